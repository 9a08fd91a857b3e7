"""How many tasks of a Slurm step still run on this host: the kernel knows, Slurm tells nobody.

A task is a child of its host's step daemon, from before it is a program until it has ended. So
that one is missing is known though it never began MPI.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_DAEMON: Final = b"slurmstepd: [%s]"  # how one calls itself, with job and step
_STATE, _PARENT = 0, 1  # fields of /proc/N/stat after the name


def step_name(environment: Mapping[str, str]) -> str:
    """`JOB.STEP`, as Slurm's commands and daemons have it; empty when this is no task."""
    job, step = environment.get("SLURM_JOB_ID", ""), environment.get("SLURM_STEP_ID", "")
    return f"{job}.{step}" if job and step else ""


def count_tasks(step: str) -> int | None:
    """The tasks of a step that run on this host; None when it has no daemon here that we see."""
    processes = [entry for entry in os.listdir("/proc") if entry.isdigit()]
    wanted = _DAEMON % step.encode()
    found = [int(process) for process in processes if _is_daemon(process, wanted)]
    if not found:
        return None
    children = (_stat(process) for process in processes)
    return sum(
        bool(facts) and int(facts[_PARENT]) in found and facts[_STATE] != b"Z" for facts in children
    )


def _is_daemon(process: str, wanted: bytes) -> bool:
    """One of this host: several "hosts" may be network namespaces of one machine."""
    try:
        words = Path("/proc", process, "cmdline").read_bytes().rstrip(b"\0 \n")
    except OSError:  # it has gone
        return False
    if words != wanted:
        return False
    try:
        return os.readlink(f"/proc/{process}/ns/net") == os.readlink("/proc/self/ns/net")
    except OSError:  # another user's: that is what a step daemon is, and there is one machine
        return True


def _stat(process: str) -> list[bytes]:
    try:
        content = Path("/proc", process, "stat").read_bytes()
    except OSError:  # it has gone
        return []
    return content.rpartition(b")")[2].split()
