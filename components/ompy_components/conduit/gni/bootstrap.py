"""Joining the job: what all ranks tell all, by the job's wire-up.

Records come in the order in which they are asked for, which begins behind the own rank so that not
everybody asks for the same one first; each says whose it is, and is put where it belongs.

Source: seed gasnet (Initialization); reference gasnet.md 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from ompy.data.errors import ERR_INTERN, MPIError
from ompy.frameworks.context import RankContext

RANK: Final = Struct("<I")


def in_order(records: Sequence[bytes], size: int) -> list[bytes]:
    """Put records, which begin with their rank, in the order of the ranks; that is taken off.

    Raises:
        MPIError: a rank has none, or two, or is none of the job.
    """
    found: list[bytes | None] = [None] * size
    for record in records:
        rank = RANK.unpack_from(record)[0]
        if rank >= size or found[rank] is not None:
            raise MPIError(ERR_INTERN, f"a second record of rank {rank}, of {size} ranks")
        found[rank] = record[RANK.size :]
    missing = [rank for rank, record in enumerate(found) if record is None]
    if missing:
        raise MPIError(ERR_INTERN, f"no record of the ranks {missing}")
    return [record for record in found if record is not None]


class Bootstrap:
    """What all tell all, one step after the other."""

    def __init__(self, context: RankContext, name: str) -> None:
        """For the conduit of that name."""
        self._context = context
        self._name = name
        self._step = 0

    def allgather(self, value: bytes) -> list[bytes]:
        """Everybody's value, by rank. All ranks call it.

        Raises:
            MPIError: a rank has ended.
        """
        wireup, rank, size = self._context.wireup, self._context.rank, self._context.size
        self._step += 1  # each step has a key: a rank may be a step ahead of who asks it
        key = f"conduit.{self._name}.{self._step}"
        wireup.publish(key, RANK.pack(rank) + value)
        wireup.commit()
        wireup.fence()
        order = [(rank + 1 + step) % size for step in range(size)]
        found = in_order([wireup.lookup(other)[key] for other in order], size)
        if found[rank] != value:
            raise MPIError(ERR_INTERN, f"rank {rank} does not find what it said itself")
        return found

    def barrier(self) -> None:
        """Return when all ranks have come."""
        self._context.wireup.fence()


def node_map(firsts: Sequence[int]) -> list[list[int]]:
    """Ranks of each host, by their order, from what each said was the first one on its host.

    Raises:
        MPIError: they contradict each other.
    """
    hosts: dict[int, list[int]] = {}
    for rank, first in enumerate(firsts):
        hosts.setdefault(first, []).append(rank)
    for first, ranks in hosts.items():
        if ranks[0] != first:
            raise MPIError(ERR_INTERN, f"ranks {ranks} say that they share a host with {first}")
    return [hosts[first] for first in sorted(hosts)]
