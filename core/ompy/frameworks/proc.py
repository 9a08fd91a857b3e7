"""A process of the job, as the layers below MPI know it."""

from __future__ import annotations

from collections.abc import Mapping

from ompy.compiled import cclass


@cclass
class Proc:
    """One process (peer) of the job.

    Attributes:
        rank: in the job: that of COMM_WORLD, but for processes that were started later.
        node: index of its host in the job.
        local_rank: among all processes of the job that its host has had.
        hostname: of its host, for messages to people.
        bml_endpoint: what the BML made for it, or None before the first use.
        departed: why it can no longer be reached, empty while it can.
        left: why it takes part in nothing new, empty while it may; what it sent before may still
            be under way (`fault_tolerance/departures.py`).
        world: the rank in the job of the first of those that share its COMM_WORLD.
    """

    bml_endpoint: object | None
    departed: str
    hostname: str
    left: str
    local_rank: int
    node: int
    rank: int
    world: int
    __slots__ = (*__annotations__, "__weakref__")

    def __init__(
        self, rank: int, node: int, local_rank: int, hostname: str, world: int = 0
    ) -> None:
        self.rank = rank
        self.node = node
        self.local_rank = local_rank
        self.hostname = hostname
        self.bml_endpoint = None
        self.departed = ""
        self.left = ""
        self.world = world

    def __repr__(self) -> str:
        return f"rank {self.rank} on {self.hostname}"


Modex = Mapping[str, bytes]  # what a process published, by key
