"""Collective calls between two groups, the halves of all ranks, in every form of the API."""

# ruff: noqa: ARG005 - all take the same arguments

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mpi4py import MPI

from tools.bench.surface_rows.collectives import ITEM, form_rows
from tools.bench.surface_rows.rows import Row, doubles, repeat, room

TAG: Final = 3  # arbitrary
EARLY: Final = 10  # calls; arbitrary: what a side makes with the first ones is there then


def _one(size: int) -> Any:
    return room(doubles(size), float)


def _each(comm: Any, size: int) -> Any:
    return room(doubles(size) * comm.remote_size, float)


def _root(_: Any) -> int:
    """The first process of the first group, as each member names it."""
    if MPI.COMM_WORLD.rank:
        return 0 if _second() else MPI.PROC_NULL
    return MPI.ROOT


def _second() -> bool:
    return MPI.COMM_WORLD.rank >= MPI.COMM_WORLD.size // 2


def _of_root(given: Any) -> Any:
    return None if MPI.COMM_WORLD.rank else given


def _of_second(given: Any) -> Any:
    return given if _second() else None


def _parts(comm: Any, size: int) -> list[Any]:
    return [_each(comm, size), [doubles(size)] * comm.remote_size]


def _all_parts(comm: Any, size: int) -> Any:
    """What is reduced to a part for each of the other group, and as much for this one."""
    return room(doubles(size) * comm.size * comm.remote_size, float)


BUFFERS: Final[dict[str, Callable[[Any, int], tuple[Any, ...]]]] = {
    "Barrier": lambda comm, size: (),
    "Bcast": lambda comm, size: (_one(size), _root(comm)),
    "Gather": lambda comm, size: (
        _of_second(_one(size)),
        _of_root(_each(comm, size)),
        _root(comm),
    ),
    "Gatherv": lambda comm, size: (
        _of_second(_one(size)),
        _of_root(_parts(comm, size)),
        _root(comm),
    ),
    "Scatter": lambda comm, size: (
        _of_root(_each(comm, size)),
        _of_second(_one(size)),
        _root(comm),
    ),
    "Scatterv": lambda comm, size: (
        _of_root(_parts(comm, size)),
        _of_second(_one(size)),
        _root(comm),
    ),
    "Allgather": lambda comm, size: (_one(size), _each(comm, size)),
    "Allgatherv": lambda comm, size: (_one(size), _parts(comm, size)),
    "Alltoall": lambda comm, size: (_each(comm, size), _each(comm, size)),
    "Alltoallv": lambda comm, size: (_parts(comm, size), _parts(comm, size)),
    "Reduce": lambda comm, size: (
        _of_second(_one(size)),
        _of_root(_one(size)),
        MPI.SUM,
        _root(comm),
    ),
    "Allreduce": lambda comm, size: (_one(size), _one(size), MPI.SUM),
    "Reduce_scatter_block": lambda comm, size: (
        _all_parts(comm, size),
        room(doubles(size) * comm.remote_size, float),
        MPI.SUM,
    ),
}
OBJECTS: Final[dict[str, Callable[[Any, Any], tuple[Any, ...]]]] = {
    "barrier": lambda comm, item: (),
    "bcast": lambda comm, item: (item, _root(comm)),
    "gather": lambda comm, item: (item, _root(comm)),
    "scatter": lambda comm, item: (_of_root([item] * comm.remote_size), _root(comm)),
    "allgather": lambda comm, item: (item,),
    "alltoall": lambda comm, item: ([item] * comm.remote_size,),
}


def rows(comm: Any) -> Iterator[Row]:
    """All of them; none where there is one rank."""
    half = comm.size // 2
    if not half:
        return
    second = comm.rank >= half
    local = comm.Split(second)
    between = local.Create_intercomm(0, comm, 0 if second else half, TAG)
    for _ in range(EARLY):
        between.Barrier()
    for row in _rows(between):
        yield row._replace(name=f"between groups: {row.name}")


def _rows(between: Any) -> Iterator[Row]:
    for base, arguments in BUFFERS.items():
        yield from form_rows("Comm", between, base, {"": arguments})
    for base, given_of in OBJECTS.items():

        def make(base: str = base, given_of: Any = given_of) -> Any:
            method, given = getattr(between, base), given_of(between, ITEM)
            return repeat(lambda: method(*given))

        yield Row(f"Comm.{base}", base, lambda _, made=make: made(), False)
