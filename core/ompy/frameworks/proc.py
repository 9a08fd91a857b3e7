"""A process of the job, as the layers below MPI know it."""

from __future__ import annotations

from collections.abc import Mapping


class Proc:
    """One process (peer) of the job.

    Attributes:
        rank: rank in the world.
        node: index of its host in the job.
        local_rank: rank among the processes of its host.
        hostname: of its host, for messages to people.
        bml_endpoint: what the BML made for it, or None before the first use.
        departed: why it can no longer be reached, empty while it can.
        left: why it takes part in nothing new, empty while it may; what it sent before may still
            be under way (`departures.py`).
    """

    __slots__ = (
        "__weakref__",
        "bml_endpoint",
        "departed",
        "hostname",
        "left",
        "local_rank",
        "node",
        "rank",
    )

    def __init__(self, rank: int, node: int, local_rank: int, hostname: str) -> None:
        self.rank = rank
        self.node = node
        self.local_rank = local_rank
        self.hostname = hostname
        self.bml_endpoint: object | None = None
        self.departed = ""
        self.left = ""

    def __repr__(self) -> str:
        return f"rank {self.rank} on {self.hostname}"


Modex = Mapping[str, bytes]  # what a process published, by key
