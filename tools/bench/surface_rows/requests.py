"""Many requests at once, and each way of waiting for them, between ranks 0 and 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mpi4py import MPI

from tools.bench.surface_rows.messages import both
from tools.bench.surface_rows.rows import Row, Step, room

COUNTS: Final = (1, 16, 128, 1000)  # requests that are waited for at once
Finish = Callable[[list[Any]], object]


def _any(requests: list[Any]) -> None:
    for _ in requests:
        MPI.Request.Waitany(requests)


def _some(requests: list[Any]) -> None:
    while MPI.Request.Waitsome(requests) is not None:
        pass


def _tested(requests: list[Any]) -> None:
    while not MPI.Request.Testall(requests):
        pass


def _tested_any(requests: list[Any]) -> None:
    left = len(requests)
    while left:
        place, done = MPI.Request.Testany(requests)
        left -= done and place >= 0


def _tested_some(requests: list[Any]) -> None:
    while MPI.Request.Testsome(requests) is not None:
        pass


def _tested_each(requests: list[Any]) -> None:
    for request in requests:
        while not request.Test():
            pass


ENDS: Final[dict[str, Finish]] = {
    "Waitany": _any,
    "Waitsome": _some,
    "Testall": _tested,
    "Testany": _tested_any,
    "Testsome": _tested_some,
    "Test": _tested_each,
}


def rows(comm: Any) -> Iterator[Row]:
    """All of them."""
    for count in COUNTS:
        window = _window(comm, count, MPI.Request.Waitall)
        yield Row("Request.Waitall", f"Waitall of {count}", window, count < 1000, count)
    for name, finish in ENDS.items():
        window = _window(comm, 16, finish)
        yield Row(f"Request.{name}", f"{name} of 16", window, False, 16)


def _window(comm: Any, count: int, finish: Finish) -> Callable[[int], Step]:
    """So many messages one way, answered by one."""
    peer = 1 - comm.rank

    def make(size: int) -> Step:
        data, back = room(size), [room(size) for _ in range(count)]
        answer = room(1)

        def once() -> None:
            if comm.rank == 0:
                finish([comm.Isend(data, peer) for _ in range(count)])
                comm.Recv(answer, peer)
            else:
                finish([comm.Irecv(place, peer) for place in back])
                comm.Send(answer, peer)

        return both(comm, once)

    return make
