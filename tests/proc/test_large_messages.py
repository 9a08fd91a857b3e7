"""Messages of more than 2 and 4 GiB between real processes, with their data; the long runs only.

Takes 13 GiB of memory: both ranks hold a message, and tcp may hold one more.
"""

from __future__ import annotations

import pytest
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.constants import BSEND_OVERHEAD
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.point_to_point.status import Status
from ompy.runtime.ranks.process import RankProcess

from tests.support.effort import THOROUGH
from tests.support.worlds import real

GIB = 1 << 30
BYTE, DOUBLE = DATATYPES["BYTE"], DATATYPES["DOUBLE"]


def numbered(process: RankProcess) -> None:
    """Every 8 bytes hold their own number; the last few bytes are no whole one."""
    import numpy as np

    comm = world_of(process)
    for size in (2 * GIB + 3, 4 * GIB + 5):
        if comm.rank == 0:
            data = np.arange(size // 8 + 1, dtype="u8").view("u1")[:size]
            comm.Ssend([data, BYTE], 1, 5)
        else:
            data = np.zeros(size, "u1")
            status = Status()
            comm.Recv([data, BYTE], 0, 5, status)
            assert status.count == size
            assert (status.Get_count(BYTE), status.Get_elements(BYTE)) == (size, size)
            words = data[: size // 8 * 8].view("u8")
            for begin in range(0, len(words), 1 << 24):
                part = words[begin : begin + (1 << 24)]
                assert (part == np.arange(begin, begin + len(part), dtype="u8")).all()
            tail = np.arange(size // 8, size // 8 + 1, dtype="u8").view("u1")[: size % 8]
            assert (data[size // 8 * 8 :] == tail).all()
        del data


def with_gaps(process: RankProcess) -> None:
    """More than 2 GiB of every other double, to plain memory, from the attached buffer too."""
    import numpy as np

    comm = world_of(process)
    count = (2 * GIB + 1024) // 8
    kind = DOUBLE.Create_vector(count, 1, 2).Commit()
    if comm.rank == 0:
        data = np.arange(2 * count, dtype="f8")
        comm.Attach_buffer(np.zeros(8 * count + BSEND_OVERHEAD, "u1"))
        comm.Bsend([data, 1, kind], 1, 1)
        data[:] = -1
        comm.Detach_buffer()
    else:
        room = np.zeros(count, "f8")
        comm.Recv(room, 0, 1)
        for begin in range(0, count, 1 << 24):
            part = room[begin : begin + (1 << 24)]
            assert (part == 2.0 * np.arange(begin, begin + len(part))).all()


CASES = [(program, btl) for program in ("numbered", "with_gaps") for btl in ("sm", "tcp")]


@pytest.mark.proc
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("program", "btl"), CASES if THOROUGH else [])
def test_large_messages(program: str, btl: str) -> None:
    # beyond 2 GiB sm takes the RDMA Pipeline; at Open MPI's 4 KiB a put that lasts for minutes
    settings = {"btl": f"self,{btl}", "btl_sm_rdma_pipeline_frag_size": 1 << 24}
    real(2, f"tests.proc.test_large_messages:{program}", settings=settings, timeout=1700)
