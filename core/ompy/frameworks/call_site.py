"""Where the program called something, kept cheaply: its line is found only when it is asked for."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import NamedTuple

from ompy.mca.plugins.loading import OURS


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
    frame = program_frame(sys._getframe(1))  # noqa: SLF001 - its only name
    return Site(frame.f_code, frame.f_lasti) if frame is not None else None


def program_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that runs the program's own code; None if there is none."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in OURS and not frame.f_code.co_filename.startswith("<frozen"):
            return frame
        frame = frame.f_back
    return None


def site_text(site: Site | None) -> str:
    """File and line; empty where that is not known."""
    if site is None:
        return ""
    for start, end, line in site.code.co_lines():
        if start <= site.place < end and line is not None:
            return f"{site.code.co_filename}:{line}"
    return site.code.co_filename
