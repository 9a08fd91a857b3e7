"""Times and rates as users write them: a number with a unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ompy.mca.errors import UsageError

TIMES: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
RATES: Final = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
LARGEST: Final = (1 << 63) - 1  # of any number that is written so; arbitrary: C's int64_t


def quantity(text: Any, units: Mapping[str, int], example: str) -> int:
    """A number with a unit.

    Raises:
        ValueError: it is none.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z/]+)\s*", str(text))
    if not found or found[2] not in units:
        raise ValueError(f"a number with a unit is needed ({', '.join(units)}), as {example}")
    value = float(found[1]) * units[found[2]]
    if value > LARGEST:
        raise ValueError(f"that is more than {LARGEST} {next(iter(units))}, the most there may be")
    return round(value)


def duration(text: str, where: str) -> int:
    """Nanoseconds, of a text such as `10ms`.

    Raises:
        UsageError: it is none; the message begins with `where`.
    """
    return _option(text, where, TIMES, "10ms")


def rate(text: str, where: str) -> int:
    """Bits per second, of a text such as `10Mbit/s`.

    Raises:
        UsageError: it is none; the message begins with `where`.
    """
    return _option(text, where, RATES, "10Mbit/s")


def _option(text: str, where: str, units: Mapping[str, int], example: str) -> int:
    try:
        return quantity(text, units, example)
    except ValueError as problem:
        raise UsageError(f"{where} {text}: {problem}") from None
