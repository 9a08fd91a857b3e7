"""Run by `test_copies.py` in a process of its own: one message per protocol, its bytes copied."""

from __future__ import annotations

import json
import sys

from tests.support import copy_counting

copy_counting.install()

from tests.sim.p2p.programs import pattern, world  # noqa: E402 - counted from here on
from tests.support.worlds import virtual  # noqa: E402


def copied(size: int, ranks: int, **settings: object) -> dict[str, int]:
    """Bytes copied by each module for one contiguous message, the receive posted before."""
    from ompy.data.convertor import ContiguousConvertor

    data = bytearray(pattern(size, 1))
    room = bytearray(size)
    found: dict[str, int] = {}

    def program(process: object) -> None:
        comm, pml = world(process), process.pml
        last = comm.size - 1
        request = None
        if comm.rank == last:
            request = pml.irecv(comm, ContiguousConvertor(memoryview(room)), 0, 5)
        process.context.wireup.fence()
        if comm.rank == 0:
            copy_counting.counted.clear()
            sending = pml.isend(comm, ContiguousConvertor(memoryview(data)), last, 5, 0)
            pml.wait(comm, sending)
        if request is not None:
            pml.wait(comm, request)
            found.update(copy_counting.counted)

    virtual(ranks, program, **settings)
    assert room == data
    return found


if __name__ == "__main__":
    cases = json.loads(sys.argv[1])
    print(json.dumps([copied(case["size"], case["ranks"], **case["set"]) for case in cases]))
