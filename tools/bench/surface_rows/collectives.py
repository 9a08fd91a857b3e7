"""Collective calls: buffers and objects, each in every form that the API has of it."""

# ruff: noqa: ARG001, ARG005 - all take the same arguments

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from mpi4py import MPI

from tools.bench.surface_rows.rows import Row, begun, doubles, repeat, room, started

Arguments = Callable[[Any, int], tuple[Any, ...]]  # of a communicator and a size


def _one(size: int) -> Any:
    return room(doubles(size), float)


def _each(comm: Any, size: int) -> Any:
    return room(doubles(size) * comm.size, float)


def _parts(comm: Any, size: int) -> list[Any]:
    """A buffer with counts and displacements, as the v-forms take it."""
    count = doubles(size)
    return [
        _each(comm, size),
        [count] * comm.size,
        [count * rank for rank in range(comm.size)],
        MPI.DOUBLE,
    ]


def _counted(comm: Any, size: int) -> list[Any]:
    """The same blocks, as most programs write them: without displacements and datatype."""
    return [_each(comm, size), [doubles(size)] * comm.size]


def _wide(comm: Any, size: int) -> list[Any]:
    """The same with a datatype for each block, and displacements in bytes."""
    count = doubles(size)
    return [
        _each(comm, size),
        [count] * comm.size,
        [count * 8 * rank for rank in range(comm.size)],
        [MPI.DOUBLE] * comm.size,
    ]


def _root(comm: Any, buffer: Any) -> Any:
    return buffer if comm.rank == 0 else None


def _column(comm: Any, size: int) -> list[Any]:
    """Every other of the doubles: a derived type."""
    count = doubles(size)
    strided = MPI.DOUBLE.Create_vector(count, 1, 2).Commit()
    return [room(2 * max(count, 1), float), 1, strided]


def _added(one: Any, other: Any, _: Any) -> None:
    """A user's operation: sums of bytes as doubles."""
    np.frombuffer(other, float)[:] += np.frombuffer(one, float)


ADDING: Final = MPI.Op.Create(_added, commute=True)

BUFFERS: Final[dict[str, dict[str, Arguments]]] = {
    "Barrier": {"": lambda comm, size: ()},
    "Bcast": {
        "": lambda comm, size: (_one(size), 0),
        "vector": lambda comm, size: (_column(comm, size), 0),
    },
    "Gather": {
        "": lambda comm, size: (_one(size), _root(comm, _each(comm, size)), 0),
        "IN_PLACE": lambda comm, size: (
            (MPI.IN_PLACE, _each(comm, size), 0) if comm.rank == 0 else (_one(size), None, 0)
        ),
    },
    "Gatherv": {
        "": lambda comm, size: (_one(size), _root(comm, _parts(comm, size)), 0),
        "counts": lambda comm, size: (_one(size), _root(comm, _counted(comm, size)), 0),
    },
    "Scatter": {
        "": lambda comm, size: (_root(comm, _each(comm, size)), _one(size), 0),
        "IN_PLACE": lambda comm, size: (
            (_each(comm, size), MPI.IN_PLACE, 0) if comm.rank == 0 else (None, _one(size), 0)
        ),
    },
    "Scatterv": {
        "": lambda comm, size: (_root(comm, _parts(comm, size)), _one(size), 0),
        "counts": lambda comm, size: (_root(comm, _counted(comm, size)), _one(size), 0),
    },
    "Allgather": {
        "": lambda comm, size: (_one(size), _each(comm, size)),
        "IN_PLACE": lambda comm, size: (MPI.IN_PLACE, _each(comm, size)),
    },
    "Allgatherv": {
        "": lambda comm, size: (_one(size), _parts(comm, size)),
        "counts": lambda comm, size: (_one(size), _counted(comm, size)),
    },
    "Alltoall": {
        "": lambda comm, size: (_each(comm, size), _each(comm, size)),
        "IN_PLACE": lambda comm, size: (MPI.IN_PLACE, _each(comm, size)),
    },
    "Alltoallv": {
        "": lambda comm, size: (_parts(comm, size), _parts(comm, size)),
        "counts": lambda comm, size: (_counted(comm, size), _counted(comm, size)),
    },
    "Alltoallw": {"": lambda comm, size: (_wide(comm, size), _wide(comm, size))},
    "Reduce": {
        "": lambda comm, size: (_one(size), _root(comm, _one(size)), MPI.SUM, 0),
        "user": lambda comm, size: (_one(size), _root(comm, _one(size)), ADDING, 0),
    },
    "Allreduce": {
        "": lambda comm, size: (_one(size), _one(size), MPI.SUM),
        "IN_PLACE": lambda comm, size: (MPI.IN_PLACE, _one(size), MPI.SUM),
        "MAX": lambda comm, size: (_one(size), _one(size), MPI.MAX),
        "user": lambda comm, size: (_one(size), _one(size), ADDING),
    },
    "Reduce_scatter_block": {"": lambda comm, size: (_each(comm, size), _one(size), MPI.SUM)},
    "Reduce_scatter": {
        "": lambda comm, size: (
            _each(comm, size),
            _one(size),
            [doubles(size)] * comm.size,
            MPI.SUM,
        )
    },
    "Scan": {"": lambda comm, size: (_one(size), _one(size), MPI.SUM)},
    "Exscan": {"": lambda comm, size: (_one(size), _one(size), MPI.SUM)},
}
FORMS: Final = (
    ("{}", "", repeat),
    ("I{}", "lower", begun),
    ("{}_init", "", started),
)

OBJECTS: Final[dict[str, Callable[[Any, Any], tuple[Any, ...]]]] = {
    "barrier": lambda comm, item: (),
    "bcast": lambda comm, item: (item, 0),
    "gather": lambda comm, item: (item, 0),
    "scatter": lambda comm, item: ([item] * comm.size if comm.rank == 0 else None, 0),
    "allgather": lambda comm, item: (item,),
    "alltoall": lambda comm, item: ([item] * comm.size,),
    "reduce": lambda comm, item: (item, MPI.SUM, 0),
    "allreduce": lambda comm, item: (item, MPI.SUM),
    "scan": lambda comm, item: (item, MPI.SUM),
    "exscan": lambda comm, item: (item, MPI.SUM),
}
REDUCED: Final = ("reduce", "allreduce", "scan", "exscan")
NEIGHBOURS: Final = {
    "Neighbor_allgather": lambda ring, size: (
        room(doubles(size), float),
        room(2 * doubles(size), float),
    ),
    "Neighbor_allgatherv": lambda ring, size: (
        room(doubles(size), float),
        _two(size),
    ),
    "Neighbor_alltoall": lambda ring, size: (
        room(2 * doubles(size), float),
        room(2 * doubles(size), float),
    ),
    "Neighbor_alltoallv": lambda ring, size: (_two(size), _two(size)),
    "Neighbor_alltoallw": lambda ring, size: (_two_wide(size), _two_wide(size)),
}


def _two(size: int) -> list[Any]:
    count = doubles(size)
    return [room(2 * count, float), [count, count], [0, count], MPI.DOUBLE]


def _two_wide(size: int) -> list[Any]:
    count = doubles(size)
    return [room(2 * count, float), [count, count], [0, count * 8], [MPI.DOUBLE] * 2]


def started_rows(comm: Any) -> Iterator[Row]:
    """Persistent calls."""
    return (row for row in _all_rows(comm) if row.method.endswith("_init"))


def rows(comm: Any) -> Iterator[Row]:
    """All others."""
    return (row for row in _all_rows(comm) if not row.method.endswith("_init"))


def alone_rows(comm: Any) -> Iterator[Row]:
    """Each rank by itself, as in a job of one."""
    del comm
    return (row._replace(name=f"COMM_SELF: {row.name}") for row in rows(MPI.COMM_SELF))


def _all_rows(comm: Any) -> Iterator[Row]:
    for base, variants in BUFFERS.items():
        yield from form_rows("Comm", comm, base, variants)
    ring = comm.Create_cart([comm.size], periods=[True])
    for base, arguments in NEIGHBOURS.items():
        yield from form_rows("Topocomm", ring, base, {"": arguments})
    for base in ("neighbor_allgather", "neighbor_alltoall"):
        items = [17] * (2 if base.endswith("alltoall") else 1)
        given = items if base.endswith("alltoall") else 17

        def neighbour(base: str = base, given: Any = given) -> Any:
            return repeat(lambda: getattr(ring, base)(given))

        yield Row(f"Topocomm.{base}", f"{base} int", lambda _, made=neighbour: made(), False)
    for base, given_of in OBJECTS.items():
        items_of = {"int": 17} if base in (*REDUCED, "barrier") else {"int": 17, "dict": ITEM}
        for kind, item in items_of.items():
            name = base if base == "barrier" else f"{base} {kind}"

            def whole(base: str = base, given_of: Any = given_of, item: Any = item) -> Any:
                method, given = getattr(comm, base), given_of(comm, item)
                return repeat(lambda: method(*given))

            yield Row(f"Comm.{base}", name, lambda _, made=whole: made(), False)


ITEM: Final = {"name": "field", "step": 3, "values": [0.5, 1.5, 2.5]}


def form_rows(kind: str, comm: Any, base: str, variants: dict[str, Arguments]) -> Iterator[Row]:
    """The rows of a call on buffers: blocking, nonblocking and persistent.

    Args:
        kind: the class that has it.
        comm: whose call it is.
        base: its name.
        variants: its arguments, by what is said of them behind its name.
    """
    for pattern, case, runner in FORMS:
        spelt = base.lower() if case else base
        method = pattern.format(spelt)
        for variant, arguments in variants.items():

            def make(
                size: int,
                method: str = method,
                arguments: Arguments = arguments,
                runner: Any = runner,
            ) -> Any:
                call, given = getattr(comm, method), arguments(comm, size)
                return runner(lambda: call(*given))

            owner = "Intracomm" if base in ("Scan", "Exscan") else kind
            yield Row(f"{owner}.{method}", f"{method} {variant}".strip(), make, base != "Barrier")
