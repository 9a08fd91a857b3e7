"""Bytes and times as people read them: `1 MiB`, `12.5 us`."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB")


def byte_count(size: int) -> str:
    """A byte count to read, in the largest unit that divides it; the bytes when none does."""
    unit = "B"
    for larger in _UNITS:
        if not size or size % 1024:
            break
        size //= 1024
        unit = larger
    return f"{size} {unit}"


def duration(nanoseconds: int) -> str:
    """A time to read, in microseconds up to ten thousand of them, then in milliseconds."""
    if nanoseconds < 10_000_000:
        return f"{nanoseconds / 1000:.1f} us"
    return f"{nanoseconds / 1_000_000:.1f} ms"
