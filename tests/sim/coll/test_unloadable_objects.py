"""Objects that cannot be made again where they come: that member fails alone, as with mpi4py.

What the others get is right, however large it is, and the communicator serves the next call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ompy.addons import pkl5
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

SIZES = (1, 300_000)  # bytes: through shared memory, and as messages of several pieces


class UserError(Exception):
    """What the program itself raises."""


def fail(*_: object) -> None:
    raise UserError("this object cannot be made")


class Unloadable:
    """An object that can be sent, and made nowhere."""

    def __init__(self, size: int) -> None:
        self.filler = b"x" * size

    def __reduce__(self) -> tuple[Any, ...]:
        return fail, (self.filler,)


def items(comm: Any, size: int) -> list[Any]:
    """One for each member; that for the last one cannot be made."""
    return [*([b"y" * size] * (comm.size - 1)), Unloadable(size)]


def first(comm: Any, size: int) -> Any:
    """What the first member gives cannot be made."""
    return Unloadable(size) if comm.rank == 0 else b"y" * size


Call = Callable[[Any, int], Any]
# by name, and who fails: the last member, all, the first one
CALLS: dict[str, tuple[Call, str]] = {
    "alltoall": (lambda comm, size: comm.alltoall(items(comm, size)), "last"),
    "scatter": (
        lambda comm, size: comm.scatter(items(comm, size) if comm.rank == 0 else None),
        "last",
    ),
    "gather": (lambda comm, size: comm.gather(first(comm, size)), "first"),
    "allgather": (lambda comm, size: comm.allgather(first(comm, size)), "all"),
    "bcast": (lambda comm, size: comm.bcast(first(comm, size)), "all"),
    "neighbours": (
        lambda comm, size: comm.Create_dist_graph_adjacent(
            range(comm.size), range(comm.size)
        ).neighbor_alltoall(items(comm, size)),
        "last",
    ),
}
RIGHT: dict[str, Callable[[int, int], Any]] = {
    "alltoall": lambda ranks, size: [b"y" * size] * ranks,
    "scatter": lambda _, size: b"y" * size,
    "gather": lambda *_: None,
    "neighbours": lambda ranks, size: [b"y" * size] * ranks,
}


@pytest.mark.parametrize("pickle5", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", CALLS)
def test_one_that_fails_fails_alone(name: str, ranks: int, size: int, pickle5: bool) -> None:
    call, failing = CALLS[name]

    def program(process: RankProcess) -> None:
        comm: Any = world_of(process)
        if pickle5 and name != "neighbours":
            comm = pkl5.Intracomm(comm)
        fails = {"last": comm.rank == comm.size - 1, "first": comm.rank == 0, "all": True}[failing]
        for _ in range(2):
            if fails:
                with pytest.raises(UserError):
                    call(comm, size)
            else:
                assert call(comm, size) == RIGHT[name](ranks, size)
        assert comm.allgather(comm.rank) == list(range(ranks))

    virtual(ranks, program)
