"""Where the program called something, kept cheaply: its line is found only when it is asked for."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Final, NamedTuple

_OURS: Final = ("ompy", "ompy_components")  # packages whose lines are not the program's


class Site(NamedTuple):
    """A place in a program.

    Attributes:
        code: of a function; no variable of the program lives on by it.
        place: byte in its code.
    """

    code: CodeType
    place: int


def call_site() -> Site | None:
    """The innermost place of the program that has called; None if there is none."""
    frame = sys._getframe(1)  # noqa: SLF001 - its only name
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _OURS:
            return Site(frame.f_code, frame.f_lasti)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def site_text(site: Site | None) -> str:
    """File and line; empty where that is not known."""
    if site is None:
        return ""
    for start, end, line in site.code.co_lines():
        if start <= site.place < end and line is not None:
            return f"{site.code.co_filename}:{line}"
    return site.code.co_filename
