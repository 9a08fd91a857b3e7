"""Results: each operation, made in each way, against what MPI says it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final

import pytest

from ompy.conformance.coll.calls import (
    CALLS,
    REDUCTIONS,
    Prepared,
    Reduction,
    composition,
    sum_reduction,
)
from ompy.conformance.coll.coll_suite import CollSuite, skip_unless_served, skip_unserved
from ompy.conformance.coll.rooms import SPREAD, Case, Types
from ompy.conformance.mpi_worlds import MpiWorlds, Rank
from ompy.mpi.communicators.intracomm import Intracomm

# of each rank; arbitrary: with and without a power of two, on one host and on several
HOSTS: Final = ((0,), (0, 1), (0, 0, 0), (0, 0, 1, 1, 1), (0, 1, 0, 1, 2, 2, 2, 2))
FEW: Final = 3  # ranks up to which every case is tried; arbitrary: the rest is a matter of time
MUCH: Final = 400  # elements; arbitrary: more than a first fragment has room for, in few blocks
LARGE: Final = 9001  # elements; arbitrary: more than any first fragment of a message has room for
TURNS: Final = 3  # starts of a persistent call; arbitrary

Way = Callable[[Intracomm, Prepared], object]


class ResultSuite(CollSuite):
    """What arrives, where it arrives, and that nothing else changes."""

    title: ClassVar[str] = "results"

    @pytest.mark.parametrize("operation", CALLS)
    def test_blocking(self, worlds: MpiWorlds, operation: str) -> None:
        """Blocking calls of 1 to 8 ranks: counts, gaps, in place, uneven blocks, each root."""
        skip_unless_served(worlds, operation)
        served = False
        for hosts in HOSTS:
            ranks = len(hosts)
            program = _program(operation, blocking, cases(ranks))
            served = any(worlds.play(program, ranks, hosts=hosts).results) or served
        skip_unserved(operation, served=served)

    @pytest.mark.parametrize("operation", CALLS)
    def test_nonblocking(self, worlds: MpiWorlds, operation: str) -> None:
        """The same begun, and waited for."""
        skip_unless_served(worlds, operation)
        program = _program(operation, nonblocking, cases(3))
        skip_unserved(operation, served=any(worlds.play(program, 3).results))

    @pytest.mark.parametrize("operation", CALLS)
    def test_persistent(self, worlds: MpiWorlds, operation: str) -> None:
        """A call that is made once and started several times."""
        skip_unless_served(worlds, operation)
        program = _program(operation, persistent, [Case(5), Case(0, salt=1)])
        skip_unserved(operation, served=any(worlds.play(program, 3).results))

    @pytest.mark.parametrize("operation", CALLS)
    def test_large(self, worlds: MpiWorlds, operation: str) -> None:
        """Messages of many fragments, between hosts and within."""
        skip_unless_served(worlds, operation)
        program = _program(operation, blocking, [Case(LARGE), Case(LARGE, in_place=True, salt=1)])
        served = any(worlds.play(program, 4, hosts=(0, 0, 1, 1)).results)
        skip_unserved(operation, served=served)

    @pytest.mark.parametrize("operation", REDUCTIONS)
    def test_order_of_operands(self, worlds: MpiWorlds, operation: str) -> None:
        """An operation that does not commute gets its operands in the order of the ranks."""
        skip_unless_served(worlds, operation)
        served = False
        for ranks in (2, 3, 4, 7):
            some = [Case(count, root=ranks - 1, salt=count) for count in (1, 6, 250)]
            program = _program(operation, blocking, some, composition)
            served = any(worlds.play(program, ranks).results) or served
        skip_unserved(operation, served=served)


def cases(ranks: int) -> list[Case]:
    """Calls of an operation, which has to serve all of them."""
    some = list(_shapes()) if ranks <= FEW else [Case(3), Case(MUCH, uneven=True, in_place=True)]
    return [case._replace(root=number % ranks, salt=number) for number, case in enumerate(some)]


def _shapes() -> Iterator[Case]:
    for count in (0, 1, 3, MUCH):
        for in_place in (False, True):
            yield Case(count, in_place=in_place)
            yield Case(count, uneven=True, in_place=in_place)
    yield Case(2, stride=SPREAD)
    yield Case(MUCH, stride=SPREAD, uneven=True)


def _program(
    operation: str,
    way: Way,
    some: Sequence[Case],
    reduction: Callable[[], Reduction] = sum_reduction,
) -> Callable[[Rank], Any]:
    """Make some calls, one after the other, without waiting for the other ranks in between."""

    def program(rank: Rank) -> bool:
        types, made = Types(), reduction()
        for case in some:
            fitting = case
            if operation == "reduce_scatter":
                fitting = case._replace(in_place=False)
            prepared = CALLS[operation](rank.comm, fitting, types, made)
            way(rank.comm, prepared)
            prepared.verify(f"{prepared.name} of {fitting}")
        types.free_all()
        return rank.serves(operation, blocking=way is blocking)

    return program


def blocking(comm: Intracomm, call: Prepared) -> None:
    """Make the blocking call."""
    getattr(comm, call.name)(*call.words)


def nonblocking(comm: Intracomm, call: Prepared) -> None:
    """Begin the call, and wait."""
    getattr(comm, f"I{call.name.lower()}")(*call.words).Wait()


def persistent(comm: Intracomm, call: Prepared) -> None:
    """Make the call ready, and start it several times."""
    request = getattr(comm, f"{call.name}_init")(*call.words)
    for _ in range(TURNS):
        request.Start()
        request.Wait()
    request.Free()
