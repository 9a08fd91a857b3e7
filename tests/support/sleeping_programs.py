"""A program whose ranks idle for long, and say how deep their poll sets are in each other."""

from __future__ import annotations

import time
import warnings

from tests.support.nesting import deepest

SIZE = 100_000  # bytes; more than goes in one fragment


def main(*pauses: float) -> None:
    """Each rank in turn keeps the other waiting; then both are busy."""
    warnings.simplefilter("error")
    from ompy import MPI

    comm = MPI.COMM_WORLD
    other = 1 - comm.rank
    pattern = bytes(range(250)) * (SIZE // 250)
    for pause in pauses:
        for late in (0, 1):
            if comm.rank == late:
                time.sleep(pause)
                comm.Send(pattern, dest=other)
                comm.send("small", dest=other)
            else:
                room = bytearray(SIZE)
                comm.Recv(room, source=other)
                assert room == pattern
                assert comm.recv(source=other) == "small"
    for number in range(200):
        assert comm.allreduce(number) == 2 * number
    print(f"deepest {deepest()}", flush=True)
