"""A window over messages: the origin's side, and what drives the target's.

Components derive from it; see README.md for the protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import ClassVar, Final

from ompy.data.convertor import Convertor, GrowingConvertor, contiguous
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.message import Message
from ompy.data.packed import to_send
from ompy.data.request import Request
from ompy.frameworks.call_site import call_site
from ompy.frameworks.fault_tolerance.departures import OF_THE_DEAD
from ompy.frameworks.osc import DYNAMIC, Held, Place, Window
from ompy.frameworks.osc_base.exposed import Attached, Exposed, combine_elements, swap_element
from ompy.frameworks.osc_base.headers import (
    COMMAND_TAG,
    OPERATIONS,
    Command,
    Kind,
    parse_answer,
    parsed,
)
from ompy.frameworks.osc_base.layouts import encode_layout
from ompy.frameworks.osc_base.listener import Listener
from ompy.frameworks.osc_base.locks import LockQueue
from ompy.frameworks.osc_base.own_part import LookingOsc
from ompy.frameworks.osc_base.pending import GIVEN_UP, Peer, Pending
from ompy.frameworks.osc_base.target import Target
from ompy.frameworks.osc_base.waits import (
    AskedLock,
    AwaitCompletes,
    AwaitMeeting,
    AwaitPost,
    OwnLock,
)
from ompy.frameworks.pml import STANDARD

# ns from the news that a rank has ended until what it still owes is given up: what it had sent, or
# others because of it, may be under way. Arbitrary: much longer than that takes
GRACE: Final = 5_000_000_000


class MessageOsc(LookingOsc):
    """Every operation as a message, on the PML.

    Attributes:
        rank: of this process in the window.
        all_messages: no operation goes another way, so a recording has all of them.
    """

    all_messages: ClassVar[bool] = False

    def __init__(self, window: Window, inline_max: int) -> None:
        """Make it, and listen.

        Args:
            window: whose.
            inline_max: bytes of data that travel with their command at most.
        """
        super().__init__(window)
        communicator = window.communicator
        self.rank: int = communicator.rank
        line = communicator.context.direct
        explores = line is not None and line.explores
        # whose part is used at once; in a world that is explored others may come first there, too
        self._at_once: int = -1 if explores else self.rank
        self._communicator = communicator
        self._engine = communicator.context.engine
        self._pml = communicator.pml
        self._inline_max = inline_max
        self._exposed = Attached() if window.flavor == DYNAMIC else Exposed(window.memory)
        self._locks = LockQueue()
        self._listener = Listener(self)
        self._service = communicator.context.service if self.all_messages else None
        self.target = Target(
            communicator, self._exposed, self._locks, self._listener.wake, self._service
        )
        self._peers: dict[int, Peer] = {}
        self._gone_since: dict[int, int] = {}
        self._held: dict[int, Held] = {}
        self._ends: AwaitCompletes  # of the last exposure
        coll = communicator.coll
        assert coll is not None, "a window's communicator has its collectives"
        self._prompt_barrier = coll.prompt_barrier() if communicator.size > 1 else _nothing
        with self._engine.lock:
            if self._service is not None:
                self._service.opened(self)
            if communicator.size > 1:
                self._listener.listen()

    def peer(self, rank: int) -> Peer:
        """A member, as a target."""
        found = self._peers.get(rank)
        if found is None:
            found = self._peers[rank] = Peer(rank, self._communicator.procs[rank])
        return found

    def close(self) -> None:
        """Listen no more."""
        with self._engine.lock:
            self._listener.close()
            if self._service is not None:
                self._service.closed(self)

    # --- operations

    def put(self, source: Message, target: int, place: Place) -> Request:
        """Send a PUT."""
        return self._write(Kind.PUT, source, target, place, "MPI_REPLACE")

    def accumulate(self, source: Message, target: int, place: Place, operation: str) -> Request:
        """Send an ACCUMULATE."""
        return self._write(Kind.ACCUMULATE, source, target, place, operation)

    def _write(
        self, kind: Kind, source: Message, target: int, place: Place, operation: str
    ) -> Request:
        self._reach(target)
        with self._engine.lock:
            peer, pending = self.peer(target), Pending()
            if target == self._at_once or (kind is Kind.PUT and self._is_apart(target)):
                combine_elements(self._exposed.message(place), to_send(source), operation)
            elif source.size:
                self._send_write(kind, peer, pending, source, place, operation)
            return peer.opened(pending)

    def _is_apart(self, target: int) -> bool:
        """Whether it is its own part without a lock: puts need no order then (MPI 4.1 12.7)."""
        return target == self.rank and target not in self._held

    def _send_write(
        self,
        kind: Kind,
        peer: Peer,
        pending: Pending,
        source: Message,
        place: Place,
        operation: str,
    ) -> None:
        peer.written = True
        self._command(peer, pending, kind, source, place, operation)

    def _send_put(self, peer: Peer, pending: Pending, source: Message, place: Place) -> None:
        """A put as a message, whatever else was meant for it."""
        self._send_write(Kind.PUT, peer, pending, source, place, "MPI_REPLACE")

    def get(self, into: Message, target: int, place: Place) -> Request:
        """Send a GET."""
        self._reach(target)
        with self._engine.lock:
            peer, pending = self.peer(target), Pending()
            if target == self._at_once or self._is_apart(target):
                into.store(to_send(self._exposed.message(place)))
            elif into.size:
                self._send_get(peer, pending, into, place)
            return peer.opened(pending)

    def _send_get(self, peer: Peer, pending: Pending, into: Message, place: Place) -> None:
        tag = self._expect(peer, pending, into)
        self._say(peer, pending, _placed(Kind.GET, tag, place, into.size))

    def fetch(
        self, source: Message | None, into: Message, target: int, place: Place, operation: str
    ) -> Request:
        """Send a FETCH."""
        self._reach(target)
        with self._engine.lock:
            peer, pending = self.peer(target), Pending()
            if target == self._at_once:
                own = self._exposed.message(place)
                before = own.packed()
                combine_elements(own, _bytes(source), operation)
                into.store(before)
            elif into.size:
                tag = self._expect(peer, pending, into)
                self._command(peer, pending, Kind.FETCH, source, place, operation, tag)
            return peer.opened(pending)

    def swap(
        self, source: Message, compare: Message, into: Message, target: int, place: Place
    ) -> Request:
        """Send a SWAP."""
        self._reach(target)
        with self._engine.lock:
            peer, pending = self.peer(target), Pending()
            if target == self._at_once:
                own = self._exposed.message(place)
                into.store(swap_element(own, to_send(source), to_send(compare)))
            else:
                tag = self._expect(peer, pending, into)
                data = bytes(to_send(compare)) + bytes(to_send(source))
                command = _placed(Kind.SWAP, tag, place, len(data))
                self._say(peer, pending, command._replace(data=data))
            return peer.opened(pending)

    def _command(
        self,
        peer: Peer,
        pending: Pending,
        kind: Kind,
        source: Message | None,
        place: Place,
        operation: str,
        tag: int = 0,
    ) -> None:
        """Send a command with data along, or followed by data."""
        size = 0 if source is None else source.size
        inline = size <= self._inline_max
        if not inline and not tag:
            tag = peer.tag()
        command = _placed(kind, tag, place, size)._replace(operation=OPERATIONS.index(operation))
        if source is None or inline:
            self._say(peer, pending, command._replace(data=_bytes(source)))
            return
        self._say(peer, pending, command)
        convertor = source.convertor()
        pending.follow(self._pml.isend(self._communicator, convertor, peer.rank, tag, STANDARD))

    def _expect(self, peer: Peer, pending: Pending, into: Message) -> int:
        """Receive an answer into a message's memory; the tag to ask for it with."""
        tag = peer.tag()
        self._await(peer, tag, pending, into.convertor())
        return tag

    def _await(self, peer: Peer, tag: int, pending: Pending, convertor: Convertor) -> None:
        receive = self._pml.irecv(self._communicator, convertor, peer.rank, tag + 1)
        peer.expect(tag, pending, receive)
        self._listener.wake()

    def _say(self, peer: Peer, pending: Pending, command: Command) -> None:
        convertor = contiguous(memoryview(command.packed()))
        pending.follow(
            self._pml.isend(self._communicator, convertor, peer.rank, COMMAND_TAG, STANDARD)
        )

    # --- completion

    def flush_local(self, targets: Sequence[int]) -> None:
        """Wait for what is under way here."""
        if not self._wait_open(targets):
            self._engine.progress()
        self._raise_first(targets)

    def _wait_open(self, targets: Iterable[int]) -> bool:
        """Wait for what is under way here to some targets; whether anything was.

        Who had nothing to wait for lets others get on instead: a rank that locks, flushes and
        looks at its own memory again and again may be waiting for what they do in it.
        """
        waits = False
        for target in targets:
            for pending in list(self.peer(target).open):
                waits = waits or not pending.complete
                self._engine.wait(pending)
        return waits

    def flush(self, targets: Sequence[int]) -> None:
        """Ask each target that was written to."""
        self._finish([target for target in targets if target in self._peers], Kind.FLUSH)

    def _finish(self, targets: Sequence[int], kind: Kind, *, always: bool = False) -> None:
        """Wait for what is under way, and for the answers of targets.

        Args:
            targets: which.
            kind: of command that asks for them.
            always: also of those that have nothing to answer. An UNLOCK is only told to them;
                a COMPLETE is known there when this returns, so that `Test` finds it.

        Raises:
            MPIError: an operation has failed.
        """
        trips = []
        waited = False
        for target in targets:
            peer = self.peer(target)
            waited = self._wait_open((target,)) or waited
            if target == self._at_once:
                continue
            if peer.written or (always and kind is Kind.COMPLETE):
                trips.append((peer, self._ask(peer, kind)))
                peer.written = False
            elif always:  # all is done there: it answered, or a BTL did it
                self._tell(peer, kind)
        for peer, trip in trips:
            problem = self._answer(trip)
            peer.problem = peer.problem or problem
        if not (waited or trips):
            self._engine.progress()
        self._raise_first(targets)

    def _tell(self, peer: Peer, kind: Kind) -> None:
        """Send a command that is not answered. A rank that has ended needs none."""
        with self._engine.lock, suppress(MPIError):
            pending = Pending()
            peer.told = True
            self._say(peer, pending, Command(kind))
            pending.begun()

    def _ask(self, peer: Peer, kind: Kind) -> Pending:
        """Send a command that is answered with success or an error."""
        room = GrowingConvertor()
        if kind in {Kind.LOCK, Kind.LOCK_SHARED}:
            alone = kind is Kind.LOCK
            pending: Pending = AskedLock(self._communicator, peer.rank, alone=alone, keep=room)
        else:
            pending = Pending(room)
        try:
            with self._engine.lock:
                tag = peer.tag()
                self._await(peer, tag, pending, room)
                self._say(peer, pending, Command(kind, tag))
                peer.told = False  # who answers this has taken in all that was said before
                pending.begun()
        except MPIError as problem:
            with self._engine.lock:
                pending.fail(problem.code, problem.detail)
        return pending

    def _answer(self, trip: Pending) -> MPIError | None:
        """Wait for an answer; what is wrong, or None."""
        self._engine.wait(trip)
        if trip.error:
            return MPIError(trip.error, trip.detail)
        room = trip.keep
        assert isinstance(room, GrowingConvertor), "it was asked by _ask"
        view = room.view
        assert view is not None, "a received message has its memory"
        code, detail = parse_answer(view)
        return MPIError(code, detail) if code else None

    def _raise_first(self, targets: Iterable[int]) -> None:
        problems = [self.peer(target).take_problem() for target in targets]
        for problem in problems:
            if problem is not None:
                raise problem

    # --- epochs

    def fence(self) -> None:
        """Flush, then a barrier, which nobody is left alone in."""
        failure = None
        try:
            self.flush(list(self._peers))
        except MPIError as problem:
            failure = problem
        self.barrier()
        if failure is not None:
            raise failure

    def start(self, targets: Sequence[int]) -> None:
        """Note that each has to post."""
        for target in targets:
            self.peer(target).must_post = True

    def complete(self, targets: Sequence[int]) -> None:
        """Wait for all to have posted, then tell them."""
        failure = None
        for target in targets:
            try:
                self._reach(target)
            except MPIError as problem:
                failure = failure or problem
        if self.rank in targets:
            self.target.channel(self.rank).complete_epoch()
        self._finish(targets, Kind.COMPLETE, always=True)
        if failure is not None:
            raise failure

    def post(self, origins: Sequence[int]) -> None:
        """Tell each."""
        channels = [self.target.channel(origin) for origin in origins]
        self._ends = AwaitCompletes(self._communicator, self._listener, channels, self._gone)
        with self._engine.lock:
            for origin in origins:
                peer = self.peer(origin)
                if origin == self.rank:
                    peer.posts += 1
                else:
                    pending = Pending()
                    self._say(peer, pending, Command(Kind.POST))
                    peer.opened(pending)

    def wait(self, origins: Sequence[int]) -> None:
        """Wait for each to complete."""
        channels = [self.target.channel(origin) for origin in origins]
        self._ends.wait(self._engine)
        gone = [channel.origin for channel in channels if not channel.completes]
        for channel in channels:
            channel.completes = max(0, channel.completes - 1)
        if gone:
            raise self._has_ended(gone[0])

    def test(self, origins: Sequence[int]) -> bool:
        """Look whether each has."""
        self._engine.progress()
        if not self._ends():
            return False
        self.wait(origins)
        return True

    def lock(self, target: int, *, exclusive: bool) -> None:
        """Ask, and wait for it."""
        if target == self._at_once:
            self._lock_own(exclusive)
        else:
            self._ask_lock(target, exclusive)
        self._held[target] = Held(exclusive, call_site())

    def _ask_lock(self, target: int, exclusive: bool) -> None:
        trip = self._ask(self.peer(target), Kind.LOCK if exclusive else Kind.LOCK_SHARED)
        problem = self._answer(trip)
        if problem is not None:
            raise problem

    def _lock_own(self, exclusive: bool) -> None:
        if self._service is not None:
            self._service.own_step()
        held = OwnLock(self._communicator, alone=exclusive)

        def tell(code: int, detail: str) -> None:
            if code:
                held.fail(code, detail)
            else:
                held.finish()

        with self._engine.lock:
            self._locks.request(self.rank, exclusive, tell)
            self._listener.wake()
        self._engine.wait(held)
        if held.error:
            raise MPIError(held.error, held.detail)

    def unlock(self, target: int) -> None:
        """Flush there; the lock goes with the answer."""
        self._held.pop(target, None)
        if target != self._at_once:
            self._finish([target], Kind.UNLOCK, always=True)
            return
        with self._engine.lock:
            self._locks.release(self.rank)
        self._engine.progress()
        self._raise_first([target])

    def lock_all(self) -> None:
        """Note that each lock is to be had."""
        for target in range(self._communicator.size):
            self.peer(target).must_lock = True

    def unlock_all(self) -> None:
        """Give back those that were had."""
        self._held.clear()
        held = [target for target, peer in self._peers.items() if not peer.must_lock]
        for target in range(self._communicator.size):
            self.peer(target).must_lock = False
        others = [target for target in held if target != self._at_once]
        if len(others) < len(held):
            self.unlock(self.rank)
        self._finish(others, Kind.UNLOCK, always=True)

    def _reach(self, target: int) -> None:
        """What an epoch wants before the first operation on a target."""
        peer = self.peer(target)
        if peer.must_lock:
            peer.must_lock = False
            self.lock(target, exclusive=False)
        if peer.must_post:
            if not peer.posts:
                post = AwaitPost(self._communicator, self._listener, peer, self._gone)
                self._engine.wait_until(post)
            peer.must_post = False
            if not peer.posts:
                raise self._has_ended(target)
            peer.posts -= 1
        if target == self._at_once and self._service is not None:
            self._service.own_step()

    def held(self) -> dict[int, Held]:
        """Those that were granted and not given back."""
        return dict(self._held)

    def queued(self) -> list[tuple[int, bool]]:
        """In the order they have asked."""
        return self._locks.queued()

    # --- memory

    def attach(self, address: int, memory: memoryview) -> None:
        """Expose a piece of memory."""
        assert isinstance(self._exposed, Attached), "the MPI floor has looked at the flavor"
        with self._engine.lock:
            self._exposed.attach(address, memory)

    def detach(self, address: int) -> None:
        """Expose it no longer."""
        assert isinstance(self._exposed, Attached), "the MPI floor has looked at the flavor"
        with self._engine.lock:
            self._exposed.detach(address)

    # --- what others say

    def command_arrived(self, origin: int, view: memoryview) -> None:
        """A command has come."""
        self.take_command(origin, parsed(view))

    def take_command(self, origin: int, command: Command) -> None:
        """Do what a command says, or have it wait."""
        if command.kind is Kind.POST:
            self.peer(origin).posts += 1
        elif command.kind is Kind.REFUSED:
            detail = bytes(command.layout).decode(errors="replace")
            self.peer(origin).refused(self._pml, command.tag, command.size, detail)
        else:
            self.target.handle_command(origin, command)
            return
        if self._service is not None:
            self._service.served(self._communicator.context_id, origin, command)

    def watches(self) -> bool:
        """Whether anything is waited for that a member may fail to do by ending."""
        return self._locks.contended or any(peer.awaited for peer in self._peers.values())

    def look_after_departed(self) -> int:
        """Give up what members that have ended still owe; how much that was."""
        given_up = 0
        for peer in self._peers.values():
            if peer.awaited and self._gone(peer.rank):
                given_up += len(peer.awaited)
                peer.departed(self._pml)
        if self._locks.contended:
            for holder in self._locks.holders():
                if self._gone(holder):
                    self._locks.departed(holder)
                    given_up += 1
        return given_up

    def _gone(self, rank: int) -> bool:
        """Whether a member has left so long ago that nothing more comes of it."""
        proc = self._communicator.procs[rank]
        if self._communicator.revoked or not proc.left:
            return self._communicator.revoked
        dead = proc in self._communicator.context.departures.dead
        now, grace = self._engine.now(), GRACE // (OF_THE_DEAD if dead else 1)
        if rank not in self._gone_since:
            self._gone_since[rank] = now
            self._engine.call_later(grace, _nothing)  # whoever sleeps looks again then
        return now - self._gone_since[rank] >= grace

    def meet_to_end(self) -> None:
        """A barrier, after which nothing more comes."""
        told = [peer for peer in self._peers.values() if peer.told]
        for trip in [self._ask(peer, Kind.FLUSH) for peer in told]:
            self._answer(trip)  # of who has ended the barrier tells
        self.barrier()

    def barrier(self) -> None:
        """Return when all members have called it.

        Raises:
            MPIError: ERR_PROC_FAILED, one of them has ended and will not.
        """
        if self._prompt_barrier is not None:
            self._prompt_barrier()
            return
        coll = self._communicator.coll
        assert coll is not None, "as above"
        everybody = range(self._communicator.size)
        tag = self._communicator.order.tag() or coll.nonblocking_tag()
        request = coll.begin_operation("barrier", tag, ())
        if not request.complete:
            self._engine.wait_until(AwaitMeeting(request, len(everybody), self._gone))
        if not request.complete:
            raise self._has_ended(next(rank for rank in everybody if self._gone(rank)))
        if request.error:
            raise MPIError(request.error, request.detail)

    def _has_ended(self, rank: int) -> MPIError:
        proc = self._communicator.procs[rank]
        return MPIError(ERR_PROC_FAILED, f"{proc} {proc.left or GIVEN_UP}")


def _nothing() -> None:
    """For a timer whose end is all there is to it, and for one that meets nobody."""


def _placed(kind: Kind, tag: int, place: Place, size: int) -> Command:
    return Command(
        kind, tag, place.displacement, place.number, size, layout=encode_layout(place.layout)
    )


def _bytes(source: Message | None) -> memoryview:
    return memoryview(b"") if source is None else to_send(source)
