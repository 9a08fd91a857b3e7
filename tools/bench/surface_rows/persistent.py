"""Persistent and partitioned messages between ranks 0 and 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mpi4py import MPI

from tools.bench.surface_rows.messages import both, nothing
from tools.bench.surface_rows.rows import Row, Step, room

STARTS: Final = ("Send_init", "Ssend_init", "Rsend_init", "Bsend_init")
PARTITIONS: Final = 4


def rows(comm: Any) -> Iterator[Row]:
    """All of them."""
    peer = 1 - comm.rank

    def exchange(name: str) -> Callable[[int], Step]:
        def make(size: int) -> Step:
            if comm.rank > 1:
                return nothing
            data, back = room(size), room(size)
            sent = getattr(comm, name)(data, peer)
            received = comm.Recv_init(back, peer)

            def pair() -> None:
                MPI.Prequest.Startall([received, sent])
                MPI.Request.Waitall([received, sent])

            return both(comm, pair)

        return make

    for name in (*STARTS, "Recv_init"):
        yield Row(f"Comm.{name}", name, exchange("Send_init" if name == "Recv_init" else name))

    yield from _partitioned(comm)


def _partitioned(comm: Any) -> Iterator[Row]:
    peer = 1 - comm.rank

    def partitioned(size: int) -> Step:
        if comm.rank > 1:
            return nothing
        data, back = room(PARTITIONS * size), room(PARTITIONS * size)
        if comm.rank == 0:
            request = comm.Psend_init([data, size, MPI.BYTE], PARTITIONS, peer, 0)
        else:
            request = comm.Precv_init([back, size, MPI.BYTE], PARTITIONS, peer, 0)

        def once() -> None:
            request.Start()
            if comm.rank == 0:
                request.Pready_range(0, PARTITIONS - 1)
            request.Wait()

        return both(comm, once)

    yield Row("Comm.Psend_init", "Psend_init", partitioned)
    yield Row("Comm.Precv_init", "Precv_init", partitioned)
