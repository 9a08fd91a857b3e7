"""Several fragments in one: a COALESCED message, for fragments that would wait one by one.

    type u8 | for each: tag u8, size u32, alloc_size u32, then alloc_size bytes

`alloc_size` is `size` rounded up, so that each subheader is aligned as the first one is.

Source: reference openmpi.md 5.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ompy_components.btl.openib.headers import (
    COALESCED,
    SUBHEADER,
    SUBHEADER_SIZE,
    BadFragment,
)

ALIGNMENT: Final = 8  # arbitrary: a word


def room_for(size: int) -> int:
    """Bytes a fragment of `size` bytes takes in a COALESCED message."""
    return SUBHEADER_SIZE + -(-size // ALIGNMENT) * ALIGNMENT


def begin_coalesced(message: memoryview) -> int:
    """Write the type. Returns the bytes that are used so far."""
    message[0] = COALESCED
    return 1


def append_fragment(message: memoryview, at: int, tag: int, fragment: memoryview) -> int:
    """Append a fragment at byte `at`. Returns the bytes that are used then."""
    taken = room_for(len(fragment))
    SUBHEADER.pack_into(message, at, tag, len(fragment), taken - SUBHEADER_SIZE)
    start = at + SUBHEADER_SIZE
    message[start : start + len(fragment)] = fragment
    return at + taken


def split_coalesced(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fragments of a COALESCED message with their tags, in order.

    Raises:
        BadFragment: it ends within one.
    """
    at = 1
    while at < len(message):
        if at + SUBHEADER_SIZE > len(message):
            raise BadFragment("a coalesced message ends within a subheader")
        tag, size, allocated = SUBHEADER.unpack_from(message, at)
        at += SUBHEADER_SIZE
        if size > allocated or at + allocated > len(message):
            raise BadFragment(f"{size} bytes of {allocated} at {at} in {len(message)} coalesced")
        yield tag, message[at : at + size]
        at += allocated
