"""The sender's half: what failed is sent again, or the dance is begun.

Source: seed bfo (5, 6, 8); reference openmpi.md 4.6 and 4.7.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.convertor import ContiguousConvertor
from ompy.data.errors import ERR_OTHER, ERR_PROC_FAILED
from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import BtlModule, Descriptor
from ompy.frameworks.pml import STANDARD, SYNCHRONOUS
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values

from ompy_components.pml.bfo.dance import SEND_TABLE, Action, SenderEvent
from ompy_components.pml.bfo.failed_message import Doing, SendMessage
from ompy_components.pml.bfo.headers import BY_ID, NOTIFY, Step, restarted
from ompy_components.pml.bfo.puts import BfoPutWrites
from ompy_components.pml.ob1.headers import MATCH, MATCH_HEADER, MATCH_SIZE
from ompy_components.pml.ob1.rendezvous.rendezvous_send import RendezvousSend
from ompy_components.pml.ob1.rendezvous.striping import Share, heaviest_first, share_out
from ompy_components.pml.ob1.selection import RDMA_DIRECT_GET
from ompy_components.pml.ob1.sending import Sending
from ompy_components.pml.ob1.sendrequest import SendRequest, send_request
from ompy_components.pml.ob1.states import SendState, rows_of

if TYPE_CHECKING:
    from ompy_components.pml.bfo.module import Bfo

_STARTED: Final = SendState.STARTED


@cclass
class BfoRendezvousSend(RendezvousSend):
    """Begins rendezvous; those that are restarted say so."""

    restarts: dict[SendRequest, SendMessage]
    __slots__ = tuple(__annotations__)

    def __init__(self, bfo: Bfo, sending: BfoSending) -> None:
        super().__init__(bfo, sending)
        self.restarts = sending.restarts

    @ccall
    def rndv_header(self, request: SendRequest, flags: int) -> bytes:
        """The header of a RNDV."""
        return self._marked(request, RendezvousSend.rndv_header(self, request, flags))

    @ccall
    def rget_header(self, request: SendRequest) -> bytes:
        """The header of a RGET."""
        return self._marked(request, RendezvousSend.rget_header(self, request))

    @cfunc
    def _marked(self, request: SendRequest, header: bytes) -> bytes:
        message = self.restarts.get(request) if self.restarts else None
        if message is None:
            return header
        return restarted(header, message.peer, message.generation)


@cclass
class BfoSending(Sending):
    """The sender's half of bfo for one rank.

    Attributes:
        restarts: messages that something of failed, until they are complete.
        dancing: those of which nothing new is begun, by the id that the dance names.
    """

    _most: int
    bfo: Bfo
    dancing: dict[int, SendRequest]
    restarts: dict[SendRequest, SendMessage]
    __slots__ = tuple(__annotations__)

    if TYPE_CHECKING:
        puts: BfoPutWrites

    def __init__(self, bfo: Bfo, values: Values) -> None:
        super().__init__(bfo, values)
        self.bfo = bfo
        self.table = rows_of(SEND_TABLE)
        self.restarts = {}
        self.dancing = {}
        self.straight = False  # each message has a machine that can begin anew
        self._most = values.restarts_max
        self.rendezvous = BfoRendezvousSend(bfo, self)
        self.puts = BfoPutWrites(bfo, self)

    # -- what ob1 asks

    @ccall
    def fragment_failed(self, request: SendRequest, descriptor: Descriptor, status: int) -> None:
        """A BTL has completed a fragment with an error."""
        tag, payload = descriptor.tag, descriptor.payload_size
        self.bfo.recovery.later(partial(self.lost, request, request.id, tag, payload))

    @ccall
    def path_failed(self, request: SendRequest, rail: Rail) -> None:
        """A BTL refuses a fragment: it was never under way."""
        begins = request.id and request.state is _STARTED
        if begins and request.protocol is RDMA_DIRECT_GET:
            rail = request.registered[0].rail  # a RGET goes over the first of its own
        self.bfo.rails.refused(rail)
        self.bfo.recovery.later(partial(self._refused, request, request.id))

    @ccall
    def given_up(self, request: SendRequest) -> bool:
        """Fail a message that found no room if no path leads to its peer any more."""
        if request.endpoint.eager.rails:
            return Sending.given_up(self, request)
        self.no_path(request)
        return True

    @ccall
    def keep_rest(self, request: SendRequest, sent: int) -> None:
        """Have all of a buffered message kept: a restart begins with its first byte."""
        request.convertor.keep(0)

    @ccall
    def unknown(self, tag: int, number: U64) -> None:
        """An answer to an older generation, or to a message that is complete."""
        self.bfo.dropped(tag, number)

    @ccall
    def finish_if_delivered(self, request: SendRequest) -> None:
        """Complete the request; one that dances has one fragment less under way."""
        if self.dancing and request.id in self.dancing:
            self.bfo.recovery.later(partial(self.ended, request))
        else:
            Sending.finish_if_delivered(self, request)

    @ccall
    def is_among(self, request: SendRequest, numbers: set[int]) -> bool:
        """Whether a peer means this message, which it may know by an older generation's id."""
        if request.id in numbers:
            return True
        message = self.restarts.get(request)
        return message is not None and not numbers.isdisjoint(message.ids)

    @ccall
    def fail_peer(self, proc: Proc, reason: str) -> None:
        """No path leads to `proc` any more."""
        for request in list(self.restarts):
            if request.endpoint.proc is proc:
                self.give_up(request, ERR_PROC_FAILED, f"{reason}: {request.story()}")
        Sending.fail_peer(self, proc, reason)

    # -- what failed

    def lost(self, request: SendRequest, number: int, tag: int, payload: int) -> None:
        """A fragment may not have arrived.

        Args:
            request: it belongs to.
            number: id of the request when the BTL said so.
            tag: of the fragment.
            payload: its bytes of the message.
        """
        if request.complete:
            return
        self.bfo.rails.note_bytes(request.endpoint.proc, payload)
        message = self._message(request)
        self._do(message, message.lost(number, tag, payload))

    def put_lost(self, request: SendRequest, number: int) -> None:
        """A put over a rail that is lost may not have been done, or no rail takes a FRAG."""
        if not request.complete:
            message = self._message(request)
            self._do(message, message.put_lost(number))

    def _refused(self, request: SendRequest, number: int) -> None:
        if request.complete or request.id != number:
            return
        if request.id and request.state is not _STARTED:
            self.put_lost(request, number)
        else:  # nothing was under way
            if request.id:
                self.bfo.rdma.withdraw(request)
                self.bfo.rdma.release(request.registered)  # the dead rail's among them
            self._begin(request)

    def returned(self, proc: Proc, fragment: bytes) -> None:
        """A message that `sendi` took, and that has no request any more."""
        _, _, context_id, rank, tag, sequence = MATCH_HEADER.unpack_from(fragment)
        communicator = self.bfo.communicator(context_id)
        if communicator is None or self.bfo.parted:
            return  # its messages were received
        data = memoryview(fragment)[MATCH_SIZE:]
        target = communicator.procs.index(proc)
        assert rank == communicator.rank, "a BTL returned what another rank sent"
        request = send_request(
            communicator,
            ContiguousConvertor(data),
            self.bfo.endpoint(proc),
            target,
            tag,
            STANDARD,
            sequence,
        )
        self.lost(request, 0, MATCH, len(data))

    def part(self) -> None:
        """All ranks have what they wait for: messages that nobody here waits for are dropped."""
        for request in list(self.restarts):
            self.give_up(request, ERR_OTHER, f"all ranks have ended: {request.story()}")

    def rail_gone(self, proc: Proc, module: BtlModule) -> None:
        """What was to go over a rail goes over others."""
        for request in list(self.requests.values()):
            if request.endpoint.proc is not proc:
                continue
            for piece in request.ranges:
                left = sum(share.left for share in piece.shares if share.rail.module is module)
                piece.shares = [share for share in piece.shares if share.rail.module is not module]
                rails = request.endpoint.send.rails
                if left and rails:
                    piece.shares.append(Share(request.endpoint.send.next(), left))

    def rail_back(self, proc: Proc) -> None:
        """A rail was healed: it carries its part of what is still to go as FRAGs."""
        _, most = self.streaming.limits
        for request in list(self.requests.values()):
            if request.endpoint.proc is not proc:
                continue
            rails = heaviest_first(request.endpoint.send.in_turn()[:most])
            for piece in request.ranges:
                parts = share_out(rails, sum(share.left for share in piece.shares))
                piece.shares = [Share(*each) for each in zip(rails, parts, strict=True)]

    # -- the dance

    def reported(self, step: Step) -> None:
        """RECVERRNOTIFY: the receiver had an error."""
        request = self.requests.get(step.send_id)
        if request is None or not _is_of(request, step):
            self.bfo.dropped(step.tag, step.send_id)
            return
        message = self._message(request)
        self._do(message, message.reported(step.send_id, step.receive_id))

    def answered(self, step: Step, event: SenderEvent) -> None:
        """RNDVRESTARTACK or RNDVRESTARTNACK."""
        request = self.dancing.get(step.send_id) or self.requests.get(step.send_id)
        if request is None or not _is_of(request, step):
            self.bfo.dropped(step.tag, step.send_id)
            return
        message = self._message(request)
        self._do(message, message.answered(event, step.send_id, step.receive_id))

    def notify_lost(self, step: Step) -> None:
        """RNDVRESTARTNOTIFY may not have arrived."""
        request = self.dancing.get(step.send_id)
        if request is not None:
            message = self.restarts[request]
            self._do(message, message.notify_lost(step.send_id))

    def ended(self, request: SendRequest) -> None:
        """Something of a message of which something failed is no longer under way."""
        message = self.restarts.get(request)
        if message is not None:
            self._do(message, message.ended())

    def _do(self, message: SendMessage, doing: Doing) -> None:
        """Do what a machine says."""
        request = message.request
        for did in doing:
            self.bfo.trace_dance("send", request, did)
            action = did.action
            if action is Action.STOP:
                self._stop(message)
            elif action is Action.NOTIFY:
                self.bfo.step(request.endpoint, _step(message, NOTIFY))
            elif action is Action.AGAIN:
                self._begin(request)
            elif action is Action.ANEW or action is Action.RESUME:
                self._anew(message, action is Action.RESUME)
            elif action is Action.ARRIVED:
                if request.ranges:
                    self.streaming.schedule(request)
                self.finish_if_delivered(request)
            elif action is Action.COMPLETE:
                request.finish()
            elif action is Action.GIVE_UP:
                detail = f"begun {self._most} times, and no rail has brought it over"
                self.give_up(request, ERR_OTHER, f"{detail}: {request.story()}")

    def _stop(self, message: SendMessage) -> None:
        """Have ob1 forget a message; what is under way of it may still end."""
        request = message.request
        self.bfo.rails.note_bytes(request.endpoint.proc, request.delivered)
        self._retire(message)
        self.dancing[request.id] = request

    def _retire(self, message: SendMessage) -> None:
        """A message has a new id. The receiver may still read what the old one offered."""
        request, old = message.request, message.ids[-1]
        self.requests.pop(old, None)
        self.dancing.pop(old, None)
        self.bfo.rdma.withdraw(request)
        message.retired += request.registered
        request.plan()

    def _anew(self, message: SendMessage, answered: bool) -> None:
        """Begin a message anew, as a rendezvous: the receiver has to find what it has of it."""
        request = message.request
        self._retire(message)
        if answered:  # the receiver reads nothing any more
            self.bfo.rdma.release(message.retired)
        self.enter(request)
        request.mode = SYNCHRONOUS
        self._begin(request)

    def _begin(self, request: SendRequest) -> None:
        """Send the first fragment, now or when there is room."""
        self.bfo.rails.note_message(request.endpoint.proc)
        if not self.start(request):
            self.bfo.pending.start(partial(self._try, request), request.endpoint)

    def _try(self, request: SendRequest) -> bool:
        """`start`, bound to this: an inherited `cpdef` method Cython takes for a C function."""
        return self.start(request)

    def _message(self, request: SendRequest) -> SendMessage:
        """The machine of a message of which something failed."""
        message = self.restarts.get(request)
        if message is None:
            message = self.restarts[request] = SendMessage(request, self._fresh, self._most)
            request.notify(partial(self._forget, request))
        return message

    def _fresh(self) -> int:
        """`fresh_id`, bound as `_try` is."""
        return self.fresh_id()

    def _forget(self, request: SendRequest) -> None:
        message = self.restarts.pop(request)
        self.dancing.pop(request.id, None)
        self.bfo.rdma.release(message.retired)


def _step(message: SendMessage, tag: int) -> Step:
    """A message of the dance about this one."""
    request = message.request
    return Step(
        tag,
        request.context_id,
        request.own_rank,
        request.sequence,
        message.generation,
        request.id,
        message.peer,
    )


def _is_of(request: SendRequest, step: Step) -> bool:
    """Whether a message of the dance is about this one."""
    if step.source == BY_ID:
        return True
    return (step.context_id, step.source, step.sequence) == (
        request.context_id,
        request.source,
        request.sequence,
    )
