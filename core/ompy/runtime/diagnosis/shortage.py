"""What the kernel has no more of for us: descriptors, processes, memory; and what to do."""

from __future__ import annotations

import errno
from typing import Final

from ompy import outputs

_ADVICE: Final = {
    errno.EMFILE: "a job needs some six for each rank of a host; raise the limit (ulimit -n)",
    errno.ENFILE: "the whole system has no more (sysctl fs.file-max)",
    errno.EAGAIN: "no more processes or memory locks may be had (ulimit -u, -l)",
    errno.ENOMEM: "end something, or raise the limit (ulimit -v)",
}
_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})

_told: set[str] = set()  # in this process, and in those it was forked from


class Short(RuntimeError):
    """There is too little of something; the text says of what, and what to do."""


def shortage(problem: BaseException | None) -> str:
    """What there is too little of, and what to do; empty if that is not what an error is about."""
    if isinstance(problem, MemoryError) or _is_of_loader(problem):
        return f"no memory is left; {_ADVICE[errno.ENOMEM]}"
    if isinstance(problem, OSError) and problem.errno in _SHORT:
        return f"{problem.strerror}: {_ADVICE[problem.errno]}"
    return ""


def tell_of(short: str) -> None:
    """Have an agent say it, once: what there is too little of is missed in many places."""
    if short not in _told:
        _told.add(short)
        outputs.tell(f"ompy-agent: error: {short}\n", "error", "error")


def _is_of_loader(problem: BaseException | None) -> bool:
    """Whether an extension module found no room: Python has only the words of the C library."""
    said = str(problem) if isinstance(problem, ImportError) else ""
    return "failed to map segment" in said or "Cannot allocate memory" in said
