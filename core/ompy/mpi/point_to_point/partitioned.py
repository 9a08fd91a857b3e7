"""Partitioned messages: one message whose parts the program hands over, and gets, one by one.

Every large partition of the sender is a message of its own, sent as soon as it is ready. The
receiver posts receives for all of them into its room, which it may see as other partitions: one of
its own has arrived when all of the sender's that touch it have. Small ones go in runs: those that
one call makes ready and that lie side by side are one message, which says which they are. All runs
have one tag, and the receiver has one receive posted at a time.

    sender      made (offers) -> answered
                started: each partition unready -> ready -> sent; before the answer it waits ready
    receiver    made (awaits the offer) -> offered (answers)
                started: receives posted; before the offer, when it comes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc
from ompy.data.constants import PROC_NULL
from ompy.data.convertor import Convertor, contiguous
from ompy.data.errors import ERR_REQUEST, MPIError
from ompy.data.message import Message
from ompy.data.part import PartConvertor
from ompy.data.request import Deferred
from ompy.data.request import Request as Operation
from ompy.engine.lock import RankLock
from ompy.frameworks.needs import Need
from ompy.frameworks.pml import STANDARD
from ompy.mpi.point_to_point.partition_channels import (
    Offer,
    Parts,
    check_unready,
    in_runs,
    problem_of,
    rows_of,
)
from ompy.mpi.point_to_point.partition_needs import (
    PartsNeeded,
    missing_parts,
    unprepared,
    unready,
    untaken,
)
from ompy.mpi.point_to_point.requeststate import PersistentState, nothing
from ompy.mpi.point_to_point.told_partitions import channels_of, told_message
from ompy.mpi.state import CommState

WORD: Final = 8  # bytes; arbitrary: a partition's number has room
RUN_HEAD: Final = 16  # bytes; arbitrary: two words, the first partition, and how many
_READY: Final = b"\1"


@cclass
class PartitionedState(PersistentState):
    """What both sides have in common.

    Attributes:
        parts: own partitions.
        peer: the other rank.
        tag: of the user.
        first: of the partitions' tags; 0 while it is not known.
        message: what is complete with the last partition, of the last start.
        problem: why there is no message, once that is known.
        told: what says when the program is told of that; None if it is at once.
    """

    _lock: RankLock
    _missing: int
    _needed: PartsNeeded
    _open: list[Operation]
    _part_size: int
    _partitions: int
    _whole: Convertor
    first: int
    message: Operation
    parts: Parts
    peer: int
    problem: Any
    tag: int
    told: Any
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        comm: CommState,
        room: Message,
        parts: Parts,
        keep: object,
        peer: int,
        tag: int,
        *,
        receives: bool,
    ) -> None:
        PersistentState.__init__(self, comm, keep, receives=receives)
        self.parts = parts
        self._partitions = parts.partitions
        self._part_size = parts.size
        self._lock = comm.world.engine.lock
        self.peer = peer
        self.tag = tag
        self.first = 0
        self.message = self.operation
        self.problem = None
        self.told = None
        self._whole = room.convertor()
        self._missing = 0
        self._open = []  # messages of this start that were not complete at once
        self._needed = PartsNeeded(self)

    @ccall
    def begin_operation(self) -> Operation:
        """Begin: nothing is ready, or has come."""
        if self.peer == PROC_NULL:
            return nothing()
        operation: Deferred = Deferred.__new__(Deferred)
        operation.reset()
        operation.waits_on = self._needed
        self._open = []
        self._lock.acquire(True)
        try:
            self.message = self.operation = operation
            told = operation if self.told is None else self.told.begin_message(operation)
            if self.problem is not None:
                operation.fail(self.problem.code, self.problem.detail)
            else:
                self.begin_parts()
                self.end_if_whole()
        finally:
            self._lock.release()
        return told

    @ccall
    def begin_parts(self) -> None:
        """What a start does, with the rank's lock held."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Partitioned messages cannot be cancelled."""
        raise self.communicator_state.fail(ERR_REQUEST, "a partitioned message cannot be cancelled")

    def part(self, start: int, size: int) -> Convertor:
        """Some bytes of the message."""
        return PartConvertor(self._whole, start, size)

    def check_partitions(self, partitions: Iterable[int]) -> Sequence[int]:
        """Partitions that exist.

        Raises:
            MPIException: ERR_ARG, one does not.
        """
        found: Sequence[int] = self.communicator_state.call(self.parts.existing, partitions)
        return found

    def fail_all(self, problem: MPIError) -> None:
        """There is no message, now or ever."""
        self.problem = problem
        self.message.fail(problem.code, problem.detail)

    @ccall
    def watch_part(self, request: Operation, count: int) -> None:
        """So many partitions are on their way: the last one completes the operation.

        A message of which one partition failed is over when nothing of it is under way.
        """
        if request.complete and not request.error and not request.cancelled:
            self._missing -= count
        else:
            self._open.append(request)
            request.notify(partial(self._part_ended, self.message, request, count))

    def _part_ended(self, operation: Operation, request: Operation, count: int) -> None:
        self._missing -= count
        failure = problem_of(request)
        if failure is not None and not operation.error:
            operation.error, operation.detail = failure.code, failure.detail
            # this may come anywhere in the PML
            self.engine.call_later(0, partial(self._give_up, operation))
        self.end_if_whole()

    def _give_up(self, operation: Operation) -> None:
        if operation is self.message and not operation.complete:
            self.withdraw()
            self.end_if_whole()

    def withdraw(self) -> None:
        """Take back what has not begun, as a partition failed."""
        raise NotImplementedError

    def need(self) -> Need | None:
        """What the message waits for (`frameworks/needs.py`)."""
        raise NotImplementedError

    @ccall
    def end_if_whole(self) -> None:
        """Complete the operation when nothing is missing."""
        if not self._missing and not self.message.complete:
            self.describe(self.message)
            self.message.finish()

    @ccall
    def describe(self, operation: Operation) -> None:
        """Say what message it was."""
        operation.source = self.peer
        operation.tag = self.tag


@cclass
class PartitionedSend(PartitionedState):
    """The sender's side."""

    _held: list[int]
    _ready: bytearray
    _run: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, comm: CommState, room: Message, parts: Parts, keep: object, peer: int, tag: int
    ) -> None:
        PartitionedState.__init__(self, comm, room, parts, keep, peer, tag, receives=False)
        self._ready = bytearray(parts.partitions)
        self._held = []  # ready before the answer
        self._run = in_runs(comm, parts)

    def tell_receiver(self) -> None:
        """Tell the receiver of it.

        Raises:
            MPIException: it cannot be reached.
        """
        comm = self.communicator_state
        with self.engine.lock:
            channels = channels_of(comm)
            self.told = told_message(comm, channels)
            comm.call(channels.make_offer, self.peer, self.tag, self.parts, self._answered)

    def _answered(self, first: int, problem: MPIError | None) -> None:
        if problem is not None:
            self.fail_all(problem)
            return
        self.first = first
        held, self._held = self._held, []
        self._send(held)

    @ccall
    def begin_parts(self) -> None:
        """Nothing is ready."""
        self._ready = bytearray(self._partitions)
        self._held = []
        self._missing = self._partitions

    def make_ready(self, partitions: Iterable[int]) -> None:
        """These partitions may be sent.

        Raises:
            MPIException: ERR_ARG, one does not exist or is ready already, and none is made ready;
                ERR_REQUEST, the request has not been started.
        """
        if type(partitions) is range and partitions and partitions.step == 1:
            self._make_row_ready(partitions.start, partitions.stop)
            return
        chosen = self.check_partitions(partitions)
        self._check_running()
        comm = self.communicator_state
        self._lock.acquire(True)
        try:
            if self.message.error or self.peer == PROC_NULL:
                return
            comm.call(check_unready, self._ready, chosen)
            for each in chosen:
                self._ready[each] = 1
            if self.first:
                self._send(chosen)
            else:
                self._held += chosen
        finally:
            self._lock.release()

    @cfunc
    def _make_row_ready(self, first: int, end: int) -> None:
        """The same of partitions side by side."""
        if first < 0 or end > self._partitions:
            self.check_partitions(range(first, end))  # says which does not exist
        self._check_running()
        comm = self.communicator_state
        self._lock.acquire(True)
        try:
            if self.message.error or self.peer == PROC_NULL:
                return
            if self._ready.find(1, first, end) >= 0:
                comm.call(check_unready, self._ready, range(first, end))  # says which is
            self._ready[first:end] = _READY * (end - first)
            if not self.first:
                self._held += range(first, end)
            elif self._run:
                self._send_row(first, end)
            else:
                self._send(range(first, end))
        finally:
            self._lock.release()

    @cfunc
    def _check_running(self) -> None:
        if not self.running:
            text = "the request is not active: start it first"
            raise self.communicator_state.fail(ERR_REQUEST, text)

    @cfunc
    def _send_row(self, first: int, end: int) -> None:
        """As `_send`, of partitions side by side that go in runs."""
        count: int
        try:
            while first < end:
                count = min(self._run, end - first)
                self._send_run(first, count)
                first += count
        except MPIError as problem:
            self.fail_all(problem)
            return
        self.end_if_whole()

    @cfunc
    def _send(self, chosen: Sequence[int]) -> None:
        """Send these, and complete the operation if they were the last ones and are gone."""
        size: int = self._part_size
        first: int
        count: int
        try:
            if self._run:
                for first, count in rows_of(sorted(chosen), self._run):
                    self._send_run(first, count)
            else:
                for each in chosen:
                    self._send_part(self.part(each * size, size), self.first - each, 1)
        except MPIError as problem:
            self.fail_all(problem)
            return
        self.end_if_whole()

    @cfunc
    def _send_run(self, first: int, count: int) -> None:
        """Send partitions side by side as one message, which says which they are."""
        size: int = count * self._part_size
        data = memoryview(raw.room(RUN_HEAD + size))
        raw.copy(data, 0, raw.two_words(first, count), 0, RUN_HEAD)
        if size:
            self._whole.pack(first * self._part_size, data[RUN_HEAD:])
        self._send_part(contiguous(data), self.first, count)

    @cfunc
    def _send_part(self, data: Convertor, tag: int, count: int) -> None:
        comm = self.comm
        assert comm is not None, "a partitioned message is in a communicator"
        request: Operation = comm.pml.isend(comm.communicator, data, self.peer, tag, STANDARD)
        if self.told is not None:
            self.told.sent(request)
        self.watch_part(request, count)

    def need(self) -> Need | None:
        """That partitions are made ready, or taken."""
        if not self.first and not self.problem:
            return unready(self, self._ready) or unprepared(self, "Precv_init")
        return unready(self, self._ready) or untaken(self, self._open)

    def withdraw(self) -> None:
        """No more partitions go, as one has failed."""
        self._missing -= self._ready.count(0)


@cclass
class PartitionedReceive(PartitionedState):
    """The receiver's side.

    Attributes:
        offer: the sender's, once it is known.
    """

    _arrived: bytearray
    _gone: bool
    _posted: list[Operation]
    _run: int
    _stage: memoryview | None
    _their_size: int
    offer: Any
    __slots__ = tuple(__annotations__)

    def __init__(
        self, comm: CommState, room: Message, parts: Parts, keep: object, peer: int, tag: int
    ) -> None:
        PartitionedState.__init__(self, comm, room, parts, keep, peer, tag, receives=True)
        self.offer = None
        self._gone = False
        self._posted = []  # for partitions that are messages of their own
        self._run = 0
        self._their_size = 0
        self._stage = None  # a run comes here, and from here to its partitions' places
        self._arrived = bytearray()  # of the sender's partitions that come in runs

    def await_offer(self) -> None:
        """Wait for the sender to tell of it."""
        comm = self.communicator_state
        with self.engine.lock:
            channels = channels_of(comm)
            self.told = told_message(comm, channels)
            waiting = channels.await_offer if self.told is None else self.told.await_offer
            comm.call(waiting, self.peer, self.tag, self._offered)

    def _offered(self, offer: Offer | None, problem: MPIError | None) -> None:
        if offer is None:
            assert problem is not None, "there is an offer, or a reason why there is none"
            self.fail_all(problem)
            return
        channels, (partitions, size) = channels_of(self.communicator_state), offer.parts
        try:
            if self._gone and self.message.complete:
                raise MPIError(ERR_REQUEST, "the receive was freed before it was started")
            self.parts.check_theirs(offer.parts, self.peer)
            self._run = in_runs(self.communicator_state, offer.parts)
            self.first = channels.take_tags(self.peer, offer, 1 if self._run else partitions)
            channels.answer_offer(self.peer, offer, self.first)
        except MPIError as refused:
            self.fail_all(refused)
            channels.answer_offer(self.peer, offer, 0, refused.code)
            return
        self.offer = offer
        self._their_size = size
        if self._run:
            self._stage = memoryview(bytearray(RUN_HEAD + self._run * size))
        if not self.message.complete:
            self._post()

    @ccall
    def begin_parts(self) -> None:
        """Nothing has come."""
        self._posted = []
        self._missing = 1  # the offer
        if self.offer is not None:
            self._post()

    @cfunc
    def _post(self) -> None:
        """Post receives for all partitions of the sender, or for the first run."""
        assert self.offer is not None, "it is known what comes"
        partitions: int = self.offer.parts.partitions
        self._missing = partitions
        if self._run:
            self._arrived = bytearray(partitions)
            self._receive_runs()
            return
        if self.told is not None:
            self.told.post_receives(self._post_parts)
            self.told.watch_asked(self._receives_of)
        else:
            self._post_parts()
        for request in list(self._posted):
            self.watch_part(request, 1)
        self.end_if_whole()

    def _post_parts(self) -> list[Operation]:
        """Post a receive for each partition of the sender."""
        comm, (partitions, size) = self.communicator_state, self.offer.parts
        for each in range(partitions):
            room = self.part(each * size, size)
            self._posted.append(
                comm.pml.irecv(comm.communicator, room, self.peer, self.first - each)
            )
        return self._posted

    @ccall
    def _receive_runs(self) -> None:
        """Take the runs that are here, and post a receive for the next one."""
        comm, stage = self.comm, self._stage
        assert comm is not None, "a partitioned message is in a communicator"
        assert stage is not None, "it is known what comes"
        try:
            while self._missing and comm.size:
                room = contiguous(stage)
                request: Operation = comm.pml.irecv(comm.communicator, room, self.peer, self.first)
                if not request.complete:
                    self._open = [request]
                    request.notify(partial(self._run_came, request))
                    return
                self._take_run(request)
        except MPIError as problem:
            self._missing = 0
            self.fail_all(problem)
        self.end_if_whole()

    def _run_came(self, request: Operation) -> None:
        self._take_run(request)
        if self._missing:  # this may come anywhere in the PML
            self.engine.call_later(0, self._receive_runs)
        else:
            self.end_if_whole()

    @cfunc
    def _take_run(self, request: Operation) -> None:
        """The bytes of a run to their places; what failed ends the operation."""
        if request.error or request.cancelled:
            failure: Any = problem_of(request)
            self._missing = 0
            self.message.fail(failure.code, failure.detail)
            return
        stage = self._stage
        assert stage is not None, "a run has come"
        first: int = raw.word(stage, 0)
        count: int = raw.word(stage, WORD)
        if self._their_size:
            bytes_come: int = count * self._their_size
            self._whole.unpack(first * self._their_size, stage[RUN_HEAD : RUN_HEAD + bytes_come])
        self._arrived[first : first + count] = _READY * count
        self._missing -= count

    def need(self) -> Need | None:
        """That partitions come."""
        if self.offer is None:
            return unprepared(self, "Psend_init")
        return missing_parts(self, self._open)

    def withdraw(self) -> None:
        """Take back the receives no partition has come for."""
        for request in self._posted:
            if not request.complete:
                self.communicator_state.pml.cancel(request)

    @ccall
    def describe(self, operation: Operation) -> None:
        """Say what message it was."""
        PartitionedState.describe(self, operation)
        if not operation.error:
            operation.received = operation.length = self._partitions * self._part_size

    def has_arrived(self, partition: int) -> bool:
        """Whether all bytes of a partition are here.

        Raises:
            MPIException: ERR_ARG, there is no such partition; or the message has failed.
        """
        (chosen,) = self.check_partitions((partition,))
        if not self.running or self.operation.source == PROC_NULL:
            return True
        if self.told is not None:
            return self._raised() or bool(self.told.look_for(chosen, self._receives_of))
        if not self._is_here(chosen):
            further = self.engine.progress() > 0
            # several of the sender's may be in it
            further = further and self.offer and self.offer.parts.partitions > self._partitions
            while further and not self._is_here(chosen):
                further = self.engine.look_further()
            if not self._is_here(chosen):
                self.engine.glance()
        return self._is_here(chosen)

    def _is_here(self, chosen: int) -> bool:
        if self._raised() or self.offer is None:
            return False
        if self._run:
            first, end = self.parts.theirs_in(chosen, self.offer.parts)
            return 0 not in self._arrived[first:end]
        return all(each.complete for each in self._receives_of(chosen) or ())

    def _raised(self) -> bool:
        """False; raises what the message has failed with."""
        if self.message.error:
            problem = MPIError(self.message.error, self.message.detail)
            raise self.communicator_state.raised(problem)
        return False

    def _receives_of(self, chosen: int) -> list[Operation] | None:
        """Receives that a partition consists of; None while that is not known."""
        if self.offer is None:
            return None
        first, end = self.parts.theirs_in(chosen, self.offer.parts)
        return self._posted[first:end]

    def freed(self) -> None:
        """The tags may be used again when nothing is under way any more."""
        with self.engine.lock:
            self._gone = True
            if self.first and (not self.running or self.message.complete):
                self._release_tags()

    @ccall
    def end_if_whole(self) -> None:
        """Complete the operation; one whose request was freed is not started again."""
        PartitionedState.end_if_whole(self)
        if self._gone and self.first and self.message.complete:
            self._release_tags()

    def _release_tags(self) -> None:
        channels_of(self.communicator_state).release_tags(self.peer, self.first)
        self.first = 0
