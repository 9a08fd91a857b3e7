"""The receiver's half: duplicates are dropped, errors reported, and a restart taken for the older.

Source: seed bfo (3, 6, 8); reference openmpi.md 4.6, 4.7 and 4.9.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.compiled import U64, Shown, ccall, cclass
from ompy.data.errors import ERR_PROC_FAILED
from ompy.frameworks.btl import BtlModule
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values

from ompy_components.pml.bfo.dance import RECEIVE_TABLE, Action, Place, ReceiverEvent
from ompy_components.pml.bfo.failed_message import Doing, ReceiveMessage, Unreceived
from ompy_components.pml.bfo.gets import BfoGets
from ompy_components.pml.bfo.headers import (
    BY_ID,
    RECV_ERR,
    RESTART_ACK,
    RESTART_NACK,
    Step,
    first_try,
    is_behind,
    is_first_try,
)
from ompy_components.pml.bfo.put_pieces import BfoPutRequests
from ompy_components.pml.ob1.fragment import Fragment
from ompy_components.pml.ob1.headers import ACK, ACK_HEADER, MATCH, PUT_HEADER, RGET_SIZE, RNDV_SIZE
from ompy_components.pml.ob1.matching import Matching, Message, PeerQueue, RecvRequest
from ompy_components.pml.ob1.receiving import Receiving
from ompy_components.pml.ob1.rendezvous.rdma_put import Wanted
from ompy_components.pml.ob1.states import rows_of

if TYPE_CHECKING:
    from ompy_components.pml.bfo.module import Bfo

KEPT: Final = 64  # generations remembered of older messages; arbitrary: more are looked through


@cclass
class BfoReceiving(Receiving):
    """The receiver's half of bfo for one rank.

    Attributes:
        restarts: receives that had an error, until they are complete.
        dancing: those that take nothing from ob1 now.
        puts: asks for pieces.
        probed: messages that a matched probe took and nobody has received yet.
    """

    _generations: Shown[dict[tuple[int, int, int], int]]
    bfo: Bfo
    dancing: dict[RecvRequest, None]
    probed: dict[Fragment, Message]
    puts: BfoPutRequests
    restarts: dict[RecvRequest, ReceiveMessage]
    __slots__ = tuple(__annotations__)

    def __init__(self, bfo: Bfo, values: Values) -> None:
        super().__init__(bfo, values)
        self.bfo = bfo
        self.table = rows_of(RECEIVE_TABLE)
        self.straight = False  # each message has a machine that can begin anew
        self.restarts = {}
        self.dancing = {}
        self.probed = {}
        # restart sequence numbers of messages that came by a restart, by context, source and the
        # sender's request, which is never the same again
        self._generations = {}
        self.puts = BfoPutRequests(bfo, self, values)
        self.rendezvous.puts = self.puts
        self.rendezvous.gets = BfoGets(bfo, self, self.puts)

    # -- what arrives

    @ccall
    def rndv_arrived(self, data: memoryview) -> None:
        """A RNDV: a first try is ob1's."""
        if is_first_try(data):
            Receiving.rndv_arrived(self, data)
            return
        plain, _, generation = first_try(RNDV_SIZE, data)
        self._restart_arrived(_context_of(data), self.rndv_fragment(plain), generation)

    @ccall
    def rget_arrived(self, module: BtlModule, data: memoryview) -> None:
        """A RGET: a first try is ob1's."""
        if is_first_try(data):
            Receiving.rget_arrived(self, module, data)
            return
        plain, _, generation = first_try(RGET_SIZE, data)
        self._restart_arrived(_context_of(data), self.rget_fragment(module, plain), generation)

    @ccall
    def out_of_turn(self, queue: PeerQueue, fragment: Fragment) -> None:
        """A message with another number than the next: early, or here a second time."""
        sequence = fragment.sequence
        if is_behind(sequence, queue.expected) or sequence in queue.early:
            self.bfo.dropped(fragment.kind, sequence)
        else:
            Receiving.out_of_turn(self, queue, fragment)

    @ccall
    def unknown(self, tag: int, number: U64) -> None:
        """A fragment for an older generation, or for a receive that is complete."""
        self.bfo.dropped(tag, number)

    def _restart_arrived(self, context_id: int, fragment: Fragment, generation: int) -> None:
        """A message that was begun anew: it takes the place of the older."""
        source, sequence = fragment.source, fragment.sequence
        request = self._receive_of(context_id, source, sequence)
        if request is not None:
            message = self._message(request)
            fragment.keep()
            promised = len(self.bfo.rdma.expected_of(request))
            doing = message.restarted(generation, fragment, promised)
            if not doing:
                self.bfo.dropped(fragment.kind, sequence)
            self._do(message, doing)
            return
        place, queued = self._place(context_id, source, sequence)
        known = queued.sender_request if queued is not None else 0
        known = self._generation(context_id, source, known)
        nowhere = Unreceived(place, known, context_id, source, sequence)
        action = nowhere.told(ReceiverEvent.RESTART, generation)
        if action is Action.NACK:
            self._refuse(context_id, source, sequence, generation, fragment.sender_request)
        elif action is not Action.DROP:
            self._remember(context_id, fragment, generation)
            if queued is not None:
                _replace(queued, fragment)
            else:
                self.arrived(context_id, fragment)

    def notified(self, step: Step) -> None:
        """RNDVRESTARTNOTIFY: the sender wants to begin anew."""
        where = step.context_id, step.source, step.sequence
        request = self._receive_of(*where)
        if request is not None:
            message = self._message(request)
            promised = len(self.bfo.rdma.expected_of(request))
            doing = message.notified(step.generation, step.send_id, promised)
            if not doing:
                self.bfo.dropped(step.tag, step.receive_id)
            self._do(message, doing)
            return
        place, _ = self._place(*where)
        nowhere = Unreceived(place, 0, *where)
        if place is not Place.OVER:  # who says NOTIFY was answered by a receive: it names nothing
            self.bfo.dropped(step.tag, step.send_id)
        elif nowhere.told(ReceiverEvent.NOTIFY, step.generation) is Action.NACK:
            self._refuse(*where, step.generation, step.send_id)

    # -- what failed

    def failed(self, request: RecvRequest, number: int) -> None:
        """An ACK, a PUT or a get of a receive failed, that had this id then."""
        if not request.complete:
            message = self._message(request)
            self._do(message, message.failed(number))

    def control_lost(self, proc: Proc, tag: int, message: bytes) -> None:
        """An ACK or a PUT may not have arrived."""
        if tag == ACK:
            _, _, send_id, number, *_ = ACK_HEADER.unpack_from(message)
            known = (*self.requests.values(), *self.dancing)
            if all(request.id != number for request in known):
                # all of the message is here, or the sender has begun anew: then it knows no such id
                step = Step(RESTART_NACK, 0, BY_ID, 0, 0, send_id)
                self.bfo.step(self.bfo.endpoint(proc), step)
        else:
            _, _, _, fragment_id, number, *_ = PUT_HEADER.unpack_from(message)
            fragment = self.bfo.rdma.expected(fragment_id)
            if fragment is None:
                return  # the FIN is here, or the receive has begun anew
            if isinstance(fragment, Wanted) and self.puts.ask_again(fragment, message):
                return
        request = self.requests.get(number)
        if request is not None:
            self.failed(request, number)

    def report_lost(self, step: Step) -> None:
        """RECVERRNOTIFY may not have arrived."""
        request = self.requests.get(step.receive_id)
        if request is not None:
            message = self._message(request)
            self._do(message, message.report_lost())

    def rail_gone(self, proc: Proc, module: BtlModule) -> None:
        """What was to come over a rail has to come over others."""
        for request in list(self.requests.values()):
            incoming = request.incoming
            if incoming is None or request.communicator.procs[request.source] is not proc:
                continue
            left = any(share.left and share.rail.module is module for share in incoming.shares)
            if left and not self.puts.rails_changed(request, self.bfo.endpoint(proc)):
                self.failed(request, request.id)

    def rail_back(self, proc: Proc) -> None:
        """A rail was healed: it carries its part of what has not been asked for yet."""
        for request in list(self.requests.values()):
            if request.communicator.procs[request.source] is proc:
                self.puts.rails_changed(request, self.bfo.endpoint(proc))

    @ccall
    def fail_peer(self, proc: Proc, reason: str) -> None:
        """No path leads to `proc` any more."""
        for request in list(self.dancing):
            if request.communicator.procs[request.source] is proc:
                self._let_go(request)
                request.fail(ERR_PROC_FAILED, f"{reason}: {request.story()}")
        Receiving.fail_peer(self, proc, reason)

    # -- the dance

    def ended(self, request: RecvRequest) -> None:
        """A get of a receive that was stopped is no longer under way."""
        message = self.restarts.get(request)
        if message is not None:
            self._do(message, message.ended())

    def _do(self, message: ReceiveMessage, doing: Doing) -> None:
        """Do what a machine says."""
        for did in doing:
            self.bfo.trace_dance("receive", message.request, did)
            if did.action is Action.REPORT:
                self._tell(message, RECV_ERR)
            elif did.action is Action.STOP:
                self._stop(message.request)
            elif did.action is Action.ACK:
                self._tell(message, RESTART_ACK)
            elif did.action is Action.ANSWER:
                self._answer(message)

    def _stop(self, request: RecvRequest) -> None:
        """Have ob1 forget a receive; of what is under way only gets are waited for."""
        self.requests.pop(request.id, None)
        self.dancing[request] = None
        if request.incoming is not None:
            for share in request.incoming.shares:
                share.left = 0
        self.bfo.rdma.drop(request)

    def _let_go(self, request: RecvRequest) -> None:
        self.dancing.pop(request, None)
        if request.incoming is not None:
            self.bfo.rdma.release(request.incoming.shares)
            request.incoming = None

    def _answer(self, message: ReceiveMessage) -> None:
        """Take the restarted message in place of the older."""
        request, fragment = message.request, message.fragment
        assert fragment is not None, "a restart is answered with its fragment"
        message.fragment = None
        self._let_go(request)
        self.deliver(request, fragment)

    def _tell(self, message: ReceiveMessage, tag: int) -> None:
        request = message.request
        communicator = request.communicator
        step = Step(
            tag,
            communicator.context_id,
            communicator.rank,
            request.sequence,
            message.generation,
            message.peer,
            request.id,
        )
        self.bfo.step(self.bfo.endpoint(communicator.procs[request.source]), step)

    def _refuse(
        self, context_id: int, source: int, sequence: int, generation: int, send_id: int
    ) -> None:
        """The whole message is here already."""
        communicator = self.bfo.communicator(context_id)
        if communicator is None:
            self.bfo.dropped(RESTART_NACK, send_id)
            return
        step = Step(RESTART_NACK, context_id, communicator.rank, sequence, generation, send_id)
        self.bfo.step(self.bfo.endpoint(communicator.procs[source]), step)

    def _message(self, request: RecvRequest) -> ReceiveMessage:
        """The machine of a receive that had an error on either side."""
        message = self.restarts.get(request)
        if message is None:
            context_id, peer = request.communicator.context_id, request.peer_request
            generation = self._generation(context_id, request.source, peer)
            message = self.restarts[request] = ReceiveMessage(request, generation)
            request.notify(partial(self._forget, request))
        return message

    def _forget(self, request: RecvRequest) -> None:
        del self.restarts[request]
        self.dancing.pop(request, None)

    # -- where a message is

    def _receive_of(self, context_id: int, source: int, sequence: int) -> RecvRequest | None:
        """The receive that has this message, and not all of it."""
        for request in (*self.requests.values(), *self.dancing):
            known = (request.communicator.context_id, request.source, request.sequence)
            if known == (context_id, source, sequence):
                return request
        return None

    def _place(self, context_id: int, source: int, sequence: int) -> tuple[Place, Fragment | None]:
        """Where a message is that no receive has, and what is queued of it."""
        queued = self._queued(context_id, source, sequence)
        if queued is not None:
            return (Place.WHOLE if queued.kind == MATCH else Place.QUEUED), queued
        over = self._is_over(context_id, source, sequence)
        return (Place.OVER if over else Place.UNSEEN), None

    def _queued(self, context_id: int, source: int, sequence: int) -> Fragment | None:
        """The beginning of a message that no receive has taken yet."""
        matching = self.matchings.get(context_id)
        if matching is None:
            waiting = self.orphans.get(context_id, [])
        else:
            queue = matching.peer(source)
            waiting = queue.held()
            waiting += [
                fragment
                for fragment, message in self.probed.items()
                if message.communicator is matching.communicator
            ]
        for fragment in waiting:
            if (fragment.source, fragment.sequence) == (source, sequence):
                return fragment
        return None

    def _is_over(self, context_id: int, source: int, sequence: int) -> bool:
        """Whether a message that is nowhere has been received."""
        matching: Matching | None = self.matchings.get(context_id)
        if matching is None:
            return self.bfo.was_freed(context_id)
        return is_behind(sequence, matching.peer(source).expected)

    def _generation(self, context_id: int, source: int, send_id: int) -> int:
        return self._generations.get((context_id, source, send_id), 0)

    def _remember(self, context_id: int, fragment: Fragment, generation: int) -> None:
        """A first fragment that has no receive yet came by a restart."""
        if len(self._generations) >= KEPT:
            self._generations = {
                key: value for key, value in self._generations.items() if self._is_needed(key[2])
            }
        self._generations[context_id, fragment.source, fragment.sender_request] = generation

    def _is_needed(self, send_id: int) -> bool:
        queues = [queue for matching in self.matchings.values() for queue in matching.peers()]
        waiting = [fragment for queue in queues for fragment in queue.held()]
        waiting += [fragment for orphans in self.orphans.values() for fragment in orphans]
        waiting += self.probed
        active = [request.peer_request for request in self.requests.values()]
        return send_id in active or any(one.sender_request == send_id for one in waiting)


def _context_of(data: memoryview) -> int:
    return int.from_bytes(data[2:4], "little")


def _replace(old: Fragment, new: Fragment) -> None:
    """Have a queued message begin as it was begun the last time."""
    new.keep()
    old.kind, old.flags, old.length = new.kind, new.flags, new.length
    old.sender_request, old.payload, old.remote = new.sender_request, new.payload, new.remote
