"""Every collective call, with the data it takes and what MPI says becomes of them.

Each function prepares one call: the words to make it by, and the memory that shows how it went.
It is begun as a blocking call, as a nonblocking one or as a persistent one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, Final, NamedTuple

from ompy.conformance.coll.rooms import Case, Room, Types
from ompy.mpi.buffers.markers import IN_PLACE
from ompy.mpi.collectives.operation import OPERATIONS as MPI_OPERATIONS
from ompy.mpi.collectives.operation import Op
from ompy.mpi.communicators.intracomm import Intracomm

MASK: Final = (1 << 31) - 1  # of the two halves of an element that is a function; arbitrary

Fold = Callable[[int, int], int]


class Prepared(NamedTuple):
    """A call that can be made.

    Attributes:
        name: of the blocking call.
        words: its arguments.
        rooms: the memory it is about.
    """

    name: str
    words: tuple[Any, ...]
    rooms: tuple[Room, ...]

    def verify(self, what: str) -> None:
        """See that all memory is as it should be.

        Raises:
            AssertionError: it is not; the text says where.
        """
        for number, room in enumerate(self.rooms):
            wrong = room.differs()
            place = ("the buffer that is sent", "the buffer that is received into")[number % 2]
            assert not wrong, f"{what}: {place if len(self.rooms) > 1 else 'the buffer'}: {wrong}"


class Reduction(NamedTuple):
    """An operation on elements.

    Attributes:
        op: for the call.
        fold: the same of two elements.
    """

    op: Op
    fold: Fold


def sum_reduction() -> Reduction:
    """Which order the elements are combined in does not matter."""
    return Reduction(MPI_OPERATIONS["SUM"], lambda left, right: left + right)


def composition() -> Reduction:
    """The order matters: elements are functions x -> a x + b, and are composed."""

    def compose(left: int, right: int) -> int:
        a, b = left >> 31 & MASK, left & MASK
        c, d = right >> 31 & MASK, right & MASK
        return (a * c & MASK) << 31 | ((a * d + b) & MASK)

    def combine(given: memoryview, into: memoryview, _datatype: object) -> None:
        left, right = memoryview(given).cast("B").cast("q"), memoryview(into).cast("B").cast("q")
        for index in range(len(left)):
            right[index] = compose(left[index], right[index])

    return Reduction(Op.Create(combine, commute=False), compose)


def combined(fold: Fold, parts: Iterable[list[int]]) -> list[int]:
    """What members' elements make, in the order of the ranks."""
    found: list[int] = []
    for part in parts:
        both = zip(found, part, strict=True)
        found = [fold(left, right) for left, right in both] if found else list(part)
    return found


def prepare_bcast(comm: Intracomm, case: Case, types: Types, _reduction: Reduction) -> Prepared:
    """The root's data come to all."""
    room, data = Room(case.elements, case.stride), case.values(case.elements, case.root)
    if comm.rank == case.root:
        room.put_values(0, data)
    room.expect_values(0, data)
    message = [room.view, case.elements, types.of_stride(case.stride)]
    return Prepared("Bcast", (message, case.root), (room,))


def prepare_scatter(comm: Intracomm, case: Case, types: Types, _reduction: Reduction) -> Prepared:
    """Block i of the root comes to rank i."""
    counts, kind = case.counts(comm.size), types.of_stride(case.stride)
    blocks = _blocks(case, counts)
    firsts = [0, *accumulate(counts)]
    sent, own = Room(sum(counts), case.stride), Room(counts[comm.rank], case.stride)
    source: object = None
    into: object = [own.view, counts[comm.rank], kind]
    if comm.rank == case.root:
        for first, block in zip(firsts, blocks, strict=False):
            sent.put_values(first, block)
        source = [sent.view, counts, firsts[:-1], kind]
    if comm.rank == case.root and case.in_place:
        into = IN_PLACE
    else:
        own.expect_values(0, blocks[comm.rank])
    return Prepared("Scatterv", (source, into, case.root), (sent, own))


def prepare_gather(comm: Intracomm, case: Case, types: Types, _reduction: Reduction) -> Prepared:
    """The data of rank i come to block i of the root."""
    counts, kind = case.counts(comm.size), types.of_stride(case.stride)
    blocks = _blocks(case, counts)
    firsts = [0, *accumulate(counts)]
    own, got = Room(counts[comm.rank], case.stride), Room(sum(counts), case.stride)
    own.put_values(0, blocks[comm.rank])
    source: object = [own.view, counts[comm.rank], kind]
    into: object = None
    if comm.rank == case.root:
        into = [got.view, counts, firsts[:-1], kind]
        if case.in_place:
            got.put_values(firsts[comm.rank], blocks[comm.rank])
            source = IN_PLACE
        for first, block in zip(firsts, blocks, strict=False):
            got.expect_values(first, block)
    return Prepared("Gatherv", (source, into, case.root), (own, got))


def prepare_allgather(comm: Intracomm, case: Case, types: Types, _reduction: Reduction) -> Prepared:
    """The data of rank i come to block i of all."""
    counts, kind = case.counts(comm.size), types.of_stride(case.stride)
    blocks = _blocks(case, counts)
    firsts = [0, *accumulate(counts)]
    own, got = Room(counts[comm.rank], case.stride), Room(sum(counts), case.stride)
    own.put_values(0, blocks[comm.rank])
    source: object = [own.view, counts[comm.rank], kind]
    if case.in_place:
        got.put_values(firsts[comm.rank], blocks[comm.rank])
        source = IN_PLACE
    for first, block in zip(firsts, blocks, strict=False):
        got.expect_values(first, block)
    if case.uneven or case.in_place:
        words = (source, [got.view, counts, firsts[:-1], kind])
        return Prepared("Allgatherv", words, (own, got))
    return Prepared("Allgather", (source, [got.view, case.elements, kind]), (own, got))


def prepare_alltoall(comm: Intracomm, case: Case, types: Types, _reduction: Reduction) -> Prepared:
    """Block j of rank i comes to block i of rank j."""
    size, kind = comm.size, types.of_stride(case.stride)

    def count(sender: int, receiver: int) -> int:
        # in place the counts are the same both ways
        mixed = sender + receiver if case.in_place else sender * 2 + receiver
        return case.elements * ((mixed + case.salt) % 3) if case.uneven else case.elements

    def block(sender: int, receiver: int) -> list[int]:
        return case.values(count(sender, receiver), sender, receiver)

    out = [count(comm.rank, other) for other in range(size)]
    into = [count(other, comm.rank) for other in range(size)]
    out_at, into_at = [0, *accumulate(out)], [0, *accumulate(into)]
    sent, got = Room(sum(out), case.stride), Room(sum(into), case.stride)
    for other in range(size):
        if case.in_place:
            got.put_values(into_at[other], block(comm.rank, other))
        else:
            sent.put_values(out_at[other], block(comm.rank, other))
        got.expect_values(into_at[other], block(other, comm.rank))
    source: object = IN_PLACE if case.in_place else [sent.view, out, out_at[:-1], kind]
    return Prepared("Alltoallv", (source, [got.view, into, into_at[:-1], kind]), (sent, got))


def prepare_reduce(comm: Intracomm, case: Case, types: Types, reduction: Reduction) -> Prepared:
    """All data, combined, come to the root."""
    parts, kind = _parts(case, comm.size), types.of_stride(case.stride)
    own, got = _reduced(comm, case, parts)
    source, into = _both_ways(case, own, got, kind)
    if comm.rank == case.root:
        got.expect_values(0, combined(reduction.fold, parts))
    else:
        source, into = [own.view, case.elements, kind], None
    if comm.rank != case.root and case.in_place:
        own.put_values(0, parts[comm.rank])
    return Prepared("Reduce", (source, into, reduction.op, case.root), (own, got))


def prepare_allreduce(comm: Intracomm, case: Case, types: Types, reduction: Reduction) -> Prepared:
    """All data, combined, come to all."""
    parts, kind = _parts(case, comm.size), types.of_stride(case.stride)
    own, got = _reduced(comm, case, parts)
    got.expect_values(0, combined(reduction.fold, parts))
    words = (*_both_ways(case, own, got, kind), reduction.op)
    return Prepared("Allreduce", words, (own, got))


def prepare_scan(comm: Intracomm, case: Case, types: Types, reduction: Reduction) -> Prepared:
    """The data of ranks 0 to i, combined, come to rank i."""
    parts, kind = _parts(case, comm.size), types.of_stride(case.stride)
    own, got = _reduced(comm, case, parts)
    got.expect_values(0, combined(reduction.fold, parts[: comm.rank + 1]))
    return Prepared("Scan", (*_both_ways(case, own, got, kind), reduction.op), (own, got))


def prepare_exscan(comm: Intracomm, case: Case, types: Types, reduction: Reduction) -> Prepared:
    """The data of ranks 0 to i-1, combined, come to rank i; rank 0 gets nothing."""
    parts, kind = _parts(case, comm.size), types.of_stride(case.stride)
    own, got = _reduced(comm, case, parts)
    got.expect_values(0, combined(reduction.fold, parts[: comm.rank]))
    return Prepared("Exscan", (*_both_ways(case, own, got, kind), reduction.op), (own, got))


def prepare_reduce_scatter(
    comm: Intracomm, case: Case, types: Types, reduction: Reduction
) -> Prepared:
    """All data are combined; block i of the result comes to rank i."""
    counts, kind = case.counts(comm.size), types.of_stride(case.stride)
    total, first = sum(counts), sum(counts[: comm.rank])
    parts = [case.values(total, rank) for rank in range(comm.size)]
    result = combined(reduction.fold, parts)[first : first + counts[comm.rank]]
    own = Room(total, case.stride)
    own.put_values(0, parts[comm.rank])
    got = Room(counts[comm.rank], case.stride)
    got.expect_values(0, result)
    words = ([own.view, total, kind], [got.view, counts[comm.rank], kind], counts, reduction.op)
    return Prepared("Reduce_scatter", words, (own, got))


CALLS: Final = {
    "bcast": prepare_bcast,
    "scatter": prepare_scatter,
    "gather": prepare_gather,
    "allgather": prepare_allgather,
    "alltoall": prepare_alltoall,
    "reduce": prepare_reduce,
    "allreduce": prepare_allreduce,
    "scan": prepare_scan,
    "exscan": prepare_exscan,
    "reduce_scatter": prepare_reduce_scatter,
}
REDUCTIONS: Final = ("reduce", "allreduce", "scan", "exscan", "reduce_scatter")


def _blocks(case: Case, counts: list[int]) -> list[list[int]]:
    return [case.values(count, rank) for rank, count in enumerate(counts)]


def _parts(case: Case, size: int) -> list[list[int]]:
    return [case.values(case.elements, rank) for rank in range(size)]


def _reduced(comm: Intracomm, case: Case, parts: list[list[int]]) -> tuple[Room, Room]:
    own, got = Room(case.elements, case.stride), Room(case.elements, case.stride)
    (got if case.in_place else own).put_values(0, parts[comm.rank])
    return own, got


def _both_ways(case: Case, own: Room, got: Room, kind: object) -> tuple[object, object]:
    source = IN_PLACE if case.in_place else [own.view, case.elements, kind]
    return source, [got.view, case.elements, kind]
