"""Bytes and times as people read them: `1 MiB`, `12.5 us`."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB")
_RATES: Final = ("B/s", "kB/s", "MB/s", "GB/s")  # decimal, as networks count


def byte_count(size: int) -> str:
    """A byte count to read, in the largest unit that divides it; the bytes when none does."""
    unit = "B"
    for larger in _UNITS:
        if not size or size % 1024:
            break
        size //= 1024
        unit = larger
    return f"{size} {unit}"


def duration(nanoseconds: int, most: int | None = None) -> str:
    """A time to read, in microseconds up to ten thousand of them, then in milliseconds.

    Args:
        nanoseconds: the time.
        most: the largest of the times it stands among, so that all of them have one unit.
    """
    if most is not None and most >= 10_000_000:
        return f"{nanoseconds / 1_000_000:.3f} ms"
    if nanoseconds < 10_000_000:
        return f"{nanoseconds / 1000:.1f} us"
    return f"{nanoseconds / 1_000_000:.1f} ms"


def rate(bytes_per_second: float) -> str:
    """A rate to read, in the largest unit that leaves something before the point."""
    power = 0
    while bytes_per_second >= 999.5 and power < len(_RATES) - 1:
        bytes_per_second /= 1000
        power += 1
    return f"{bytes_per_second:.{1 if power and bytes_per_second < 99.5 else 0}f} {_RATES[power]}"
