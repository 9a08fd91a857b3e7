"""Keeping hold of every process a job started, wrappers' children included (Linux).

A process that is a *child subreaper* becomes the parent of whatever its descendants leave
behind. So as long as it has a child, something of the job lives; once `waitpid` knows no child,
nothing does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Mapping
from typing import Final

_SET_PDEATHSIG: Final = 1  # Linux PR_SET_PDEATHSIG
_SET_CHILD_SUBREAPER: Final = 36  # Linux PR_SET_CHILD_SUBREAPER
_EXITING: Final = 0x4  # Linux PF_EXITING: set before a process closes its files
_RETRY: Final = 0.001  # s; arbitrary: killed processes take about that long to go

_libc: Final = ctypes.CDLL(None, use_errno=True)  # before any fork: a child must not import


def control_process(option: int, value: int | bytes) -> None:
    """Linux `prctl`: change something of this process."""
    _libc.prctl(option, value, 0, 0, 0)


def become_subreaper() -> None:
    """Be the parent of processes that descendants leave behind."""
    control_process(_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Called in a forked child: get a signal when the process `parent`, which forked it, dies."""
    control_process(_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it died before the line above
        os.kill(os.getpid(), number)


def descendants() -> list[int]:
    """The processes below this one, parents before children. Zombies are among them.

    Of processes that come and go meanwhile some may be missing.
    """
    found = [os.getpid()]
    try:
        for process in found:
            found += _children_of(process)
    except OSError:  # the kernel has no such files
        return _descendants_by_parents()
    return found[1:]


def _children_of(process: int) -> list[int]:
    """By the kernel's own lists, one per thread.

    Raises:
        FileNotFoundError: the kernel keeps none.
    """
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        if process == os.getpid():
            raise
        return []  # it has gone
    found: list[int] = []
    for thread in threads:
        try:
            with open(f"/proc/{process}/task/{thread}/children") as file:
                found += map(int, file.read().split())
        except OSError:
            if process == os.getpid():
                raise
    return found


def _descendants_by_parents() -> list[int]:
    """The same, by asking every process there is."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            parent = _parent_of(entry)
            if parent:
                children.setdefault(parent, []).append(int(entry))
    found = [os.getpid()]
    for process in found:
        found += children.get(process, ())
    return found[1:]


def _parent_of(process: str) -> int:
    facts = _stat(process)
    return int(facts[1]) if facts else 0


def is_ending(process: int) -> bool:
    """Whether a process has gone or is on its way out, so that its files may be closed."""
    facts = _stat(str(process))
    return not facts or bool(int(facts[6]) & _EXITING)


def _stat(process: str) -> list[bytes]:
    """The fields of /proc/N/stat from the state on; empty if it has gone."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            content = file.read()
    except OSError:
        return []
    return content.rpartition(b")")[2].split()  # the name before may hold anything


def signal_descendants(number: int, but_groups: frozenset[int] = frozenset()) -> None:
    """Send a signal to every process below this one, except those of some process groups."""
    for process in descendants():
        try:
            if os.getpgid(process) not in but_groups:
                os.kill(process, number)
        except ProcessLookupError:
            pass


def let_end(children: Mapping[int, float]) -> None:
    """Wait for children that are to end by themselves.

    Args:
        children: seconds that each of them has from now on.
    """
    began = time.monotonic()
    for child, seconds in children.items():
        while time.monotonic() < began + seconds and not is_ending(child):
            time.sleep(_RETRY)


def reap_all() -> tuple[list[tuple[int, int]], bool]:
    """The children that have ended, with their wait statuses, and whether any is left."""
    ended: list[tuple[int, int]] = []
    try:
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return ended, True
            ended.append((process, status))
    except ChildProcessError:
        return ended, False


def kill_descendants(patience: float) -> bool:
    """Kill and reap everything below this process. False if something would not go.

    Args:
        patience: seconds to try.
    """
    deadline = time.monotonic() + patience
    while True:
        _, left = reap_all()
        if not left:
            return True
        signal_descendants(signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(_RETRY)


def catches(process: int, number: int) -> bool:
    """Whether a process has a handler for a signal, so that it does not die of it."""
    try:
        with open(f"/proc/{process}/status") as status:
            caught = next(line for line in status if line.startswith("SigCgt:"))
    except (OSError, StopIteration):  # it has gone; or no Linux, where it is not asked
        return False
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
