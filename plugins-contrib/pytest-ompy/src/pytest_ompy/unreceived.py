"""Messages that were sent to this rank and that nobody received."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def unreceived(comms: Sequence[Any]) -> str:
    """What still waits on these communicators, in words; empty if nothing does.

    Collective. Messages of one sender on one communicator match in the order they were sent, so
    once something has come from every member, all it sent before has come too, and what was not
    received can be probed for. Of each sender the first such message is named. Not seen are
    messages on communicators the test made itself, and those of collectives.

    Args:
        comms: the same on all ranks.
    """
    from ompy import MPI

    found = []
    for comm in comms:
        comm.alltoall([None] * comm.size)
        status = MPI.Status()
        for source in range(comm.size):
            if comm.Iprobe(source=source, tag=MPI.ANY_TAG, status=status):
                size = status.Get_count(MPI.BYTE)
                tag = status.Get_tag()
                found.append(f"{size} bytes with tag {tag} from rank {source} on {comm.name}")
    return f"never received: {'; '.join(found)}" if found else ""
