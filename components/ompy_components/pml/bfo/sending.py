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

from ompy_components.pml.bfo.dance import Action, SenderEvent, SenderState, sender_step
from ompy_components.pml.bfo.headers import BY_ID, NOTIFY, Step, following, newer, restarted
from ompy_components.pml.bfo.puts import BfoPutWrites
from ompy_components.pml.ob1.headers import FRAG, MATCH, MATCH_HEADER, MATCH_SIZE
from ompy_components.pml.ob1.rails import Share, heaviest_first, share_out
from ompy_components.pml.ob1.rendezvous_send import RendezvousSend
from ompy_components.pml.ob1.selection import RDMA_DIRECT_GET
from ompy_components.pml.ob1.sending import Sending
from ompy_components.pml.ob1.sendrequest import SendRequest, send_request
from ompy_components.pml.ob1.states import SendState

if TYPE_CHECKING:
    from ompy_components.pml.bfo.module import Bfo

UNANSWERED: Final = (SendState.AWAIT_ACK, SendState.AWAIT_GET)


class SendRestart:
    """What bfo knows of a message that was sent again, from its first failure to its end.

    Attributes:
        generation: restart sequence number.
        ids: that the request had in earlier generations.
        peer: the receiver's request, as far as it is known.
        retired: registrations of older generations, which the receiver may still use.
        state: of the dance.
        times: generations there were.
    """

    __slots__ = ("generation", "ids", "peer", "retired", "state", "times")

    def __init__(self) -> None:
        self.generation = 0
        self.ids: set[int] = set()
        self.times = 0
        self.peer = 0
        self.retired: list[Share] = []
        self.state = SenderState.FLOWING


@cclass
class BfoRendezvousSend(RendezvousSend):
    """Begins rendezvous; those that are restarted say so."""

    restarts: dict[SendRequest, SendRestart]
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
        restart = self.restarts.get(request) if self.restarts else None
        if restart is None:
            return header
        return restarted(header, restart.peer, restart.generation)


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
    restarts: dict[SendRequest, SendRestart]
    __slots__ = tuple(__annotations__)

    if TYPE_CHECKING:
        puts: BfoPutWrites

    def __init__(self, bfo: Bfo, values: Values) -> None:
        super().__init__(bfo, values)
        self.bfo = bfo
        self.restarts = {}
        self.dancing = {}
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
        begins = request.id and request.state is SendState.STARTED
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
            self.bfo.recovery.later(partial(self.drained, request))
        else:
            Sending.finish_if_delivered(self, request)

    def lacks_its_answer(self, request: SendRequest) -> bool:
        """Only the ACK of the last time is missing; what dances begins anew."""
        return request.id not in self.dancing and Sending.lacks_its_answer(self, request)

    @ccall
    def is_among(self, request: SendRequest, numbers: set[int]) -> bool:
        """Whether a peer means this message, which it may know by an older generation's id."""
        if request.id in numbers:
            return True
        restart = self.restarts.get(request)
        return restart is not None and not numbers.isdisjoint(restart.ids)

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
            number: id of the request at the time.
            tag: of the fragment.
            payload: its bytes of the message.
        """
        if request.complete:
            return
        self.bfo.rails.note_bytes(request.endpoint.proc, payload)
        if tag == MATCH:
            self._grow(request)
            self._begin(request)
        elif request.id != number or request.id in self.dancing:
            self.drained(request)
        elif tag == FRAG:
            self.event(request, SenderEvent.FAILED)
        elif request.state in UNANSWERED and not request.peer_request:
            self.event(request, SenderEvent.FIRST_LOST)
        else:  # it was answered: the receiver has it
            request.delivered += payload
            if request.ranges:
                self.streaming.schedule(request)
            self.finish_if_delivered(request)

    def put_lost(self, request: SendRequest, number: int) -> None:
        """A put over a rail that is lost may not have been done."""
        if request.complete:
            return
        if request.id != number:
            self.drained(request)
        else:
            self.event(request, SenderEvent.FAILED)

    def _refused(self, request: SendRequest, number: int) -> None:
        if request.complete or request.id != number:
            return
        if request.id and request.state is not SendState.STARTED:
            self.event(request, SenderEvent.FAILED)
        else:
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
        self.bfo.rails.note_bytes(proc, len(data))
        self._grow(request)
        self._begin(request)

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
        if request.peer_request == 0:
            request.peer_request = step.receive_id
        self.event(request, SenderEvent.FAILED)

    def answered(self, step: Step, event: SenderEvent) -> None:
        """RNDVRESTARTACK or RNDVRESTARTNACK."""
        request = self.dancing.get(step.send_id) or self.requests.get(step.send_id)
        restart = self.restarts.get(request) if request is not None else None
        known = restart.generation if restart is not None else 0
        stale = step.source != BY_ID and newer(known, step.generation)
        if request is None or stale or not _is_of(request, step):
            self.bfo.dropped(step.tag, step.send_id)
            return
        restart = self._record(request)
        if step.receive_id:
            restart.peer = step.receive_id
        self.event(request, event)

    def notify_lost(self, step: Step) -> None:
        """RNDVRESTARTNOTIFY may not have arrived."""
        request = self.dancing.get(step.send_id)
        if request is not None and self.restarts[request].generation == step.generation:
            self.event(request, SenderEvent.NOTIFY_LOST)

    def event(self, request: SendRequest, event: SenderEvent) -> None:
        """Something happened to a message: do what the table says."""
        restart = self._record(request)
        before = restart.state
        restart.state, action = sender_step(before, event)
        self.bfo.trace_dance("send", request, before.value, event.value, restart.state.value)
        if action is Action.STOP:
            self._stop(request, restart)
            self.drained(request)
        elif action is Action.NOTIFY:
            self.bfo.step(request.endpoint, self._step(request, NOTIFY))
        elif action is Action.RESTART:
            self._restart(request, restart, answered=event is SenderEvent.ACK)
        elif action is Action.COMPLETE:
            self.dancing.pop(request.id, None)
            request.finish()

    def drained(self, request: SendRequest) -> None:
        """Go on with the dance if nothing of a message is under way any more."""
        waits = request.id in self.dancing and not request.complete
        if waits and not request.in_flight and not self.puts.under_way(request):
            self.event(request, SenderEvent.DRAINED)

    def _stop(self, request: SendRequest, restart: SendRestart) -> None:
        """Have ob1 forget a message; what is under way of it may still end."""
        if request.id in self.dancing:
            return
        restart.peer = request.peer_request or restart.peer
        self.bfo.rails.note_bytes(request.endpoint.proc, request.delivered)
        if not self._grow(request):
            return
        self._retire(request, restart)
        del self.requests[request.id]
        self.dancing[request.id] = request

    def _retire(self, request: SendRequest, restart: SendRestart) -> None:
        """Give a message a new id. The receiver may still read what the old one offered."""
        self.requests.pop(request.id, None)
        self.bfo.rdma.withdraw(request)
        restart.retired += request.registered
        restart.ids.add(request.id)
        request.registered = []
        request.id = 0
        self.open_rendezvous(request)

    def _restart(self, request: SendRequest, restart: SendRestart, answered: bool) -> None:
        """Begin a message anew, as a rendezvous: the receiver has to find what it has of it."""
        self.dancing.pop(request.id, None)
        if not self._grow(request):
            return
        self._retire(request, restart)
        if answered:  # the receiver reads nothing any more
            self.bfo.rdma.release(restart.retired)
        request.delivered = 0
        request.mode = SYNCHRONOUS
        self._begin(request)

    def _begin(self, request: SendRequest) -> None:
        """Send the first fragment, now or when there is room."""
        if request.complete:
            return
        self.bfo.rails.note_message(request.endpoint.proc)
        if not self.start(request):
            self.bfo.pending.start(partial(self._try, request), request.endpoint)

    def _try(self, request: SendRequest) -> bool:
        """`start`, bound to this: an inherited `cpdef` method Cython takes for a C function."""
        return self.start(request)

    def _record(self, request: SendRequest) -> SendRestart:
        restart = self.restarts.get(request)
        if restart is None:
            restart = self.restarts[request] = SendRestart()
            request.notify(partial(self._forget, request))
        return restart

    def _grow(self, request: SendRequest) -> bool:
        """The next generation; one that fails for ever ends with an error, and false."""
        restart = self._record(request)
        restart.generation = following(restart.generation)
        restart.times += 1
        if 0 < self._most < restart.times:
            detail = f"begun {self._most} times, and no rail has brought it over"
            self.give_up(request, ERR_OTHER, f"{detail}: {request.story()}")
        return not request.complete

    def _forget(self, request: SendRequest) -> None:
        restart = self.restarts.pop(request)
        self.dancing.pop(request.id, None)
        self.bfo.rdma.release(restart.retired)

    def _step(self, request: SendRequest, tag: int) -> Step:
        restart = self.restarts[request]
        return Step(
            tag,
            request.context_id,
            request.own_rank,
            request.sequence,
            restart.generation,
            request.id,
            restart.peer,
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
