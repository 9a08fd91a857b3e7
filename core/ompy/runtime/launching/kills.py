"""`--kill`: ranks and hosts that are lost on purpose, for programs that survive it.

Each is read once, by the launcher, which sends the agent of the host a word when it is time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.mca.errors import UsageError
from ompy.runtime.faults.quantities import duration

if TYPE_CHECKING:
    from ompy.frameworks.job import Job

_KEYS: Final = ("rank", "host", "after")


class Kill(NamedTuple):
    """Somebody is killed.

    Attributes:
        after_s: since all ranks of the beginning were in MPI.
        node: index of the host.
        rank: in the job; -1 for all of the host, and its agent.
    """

    after_s: float
    node: int
    rank: int


def read_kills(texts: Sequence[str], job: Job) -> tuple[Kill, ...]:
    """What the options say, in the order of time.

    Args:
        texts: each `rank=R,after=T` or `host=NAME,after=T`, with a time such as `2s`.
        job: which it is about.

    Raises:
        UsageError: one of them makes no sense.
    """
    return tuple(sorted(_read(text, job) for text in texts))


def _read(text: str, job: Job) -> Kill:
    where = f"--kill {text}"
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if key not in _KEYS or not equals or key in found:
            raise UsageError(f"{where}: rank=R,after=2s or host=NAME,after=2s is expected")
        found[key] = value
    if ("rank" in found) is ("host" in found):
        raise UsageError(f"{where}: either a rank or a host is expected")
    after_s = duration(found.get("after", "0s"), where) / 1e9
    if "host" in found:
        if found["host"] not in job.hosts:
            names = ", ".join(job.hosts)
            raise UsageError(f"{where}: no host of the job is called so; there are {names}")
        return Kill(after_s, job.hosts.index(found["host"]), -1)
    rank = int(found["rank"]) if found["rank"].isdecimal() else -1
    if not 0 <= rank < len(job.placements):
        raise UsageError(f"{where}: the job has ranks 0 to {len(job.placements) - 1}")
    return Kill(after_s, job.placements[rank].node, rank)
