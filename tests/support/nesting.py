"""How deep the poll sets of this process are in each other, as the kernel tells (Linux)."""

from __future__ import annotations

import os
import re
from pathlib import Path

LIMIT = 5  # Linux: EP_MAX_NESTS, and the outermost
_DESCRIPTORS = Path("/proc/self/fd")
_TARGET = re.compile(r"^tfd:\s*(\d+)", re.MULTILINE)


def sets() -> dict[int, list[int]]:
    """Each epoll descriptor, and the descriptors in it."""
    found = {}
    for name in os.listdir(_DESCRIPTORS):
        try:
            if os.readlink(_DESCRIPTORS / name) == "anon_inode:[eventpoll]":
                text = Path("/proc/self/fdinfo", name).read_text()
                found[int(name)] = [int(target) for target in _TARGET.findall(text)]
        except FileNotFoundError:  # that of the listing itself
            continue
    return found


def depth(descriptor: int) -> int:
    """Poll sets from this one down to the deepest in it; 0 for what is none."""
    return _depth(descriptor, sets())


def deepest() -> int:
    """Poll sets in the longest chain of this process."""
    found = sets()
    return max((_depth(one, found) for one in found), default=0)


def _depth(descriptor: int, found: dict[int, list[int]]) -> int:
    if descriptor not in found:
        return 0
    return 1 + max((_depth(inner, found) for inner in found[descriptor]), default=0)
