"""What lines of a program say that calls stand in, as the LINE events of a traced job have it.

A rank writes one before the first call that stands in a line. So a trace shows lines of programs
that are not there any more, or were on another machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ompy.trace.sink import Event

LINE: Final = "LINE"


def program_lines(events: Iterable[Event]) -> dict[tuple[int, str, int], str]:
    """The text of lines, by rank, file and number of the line.

    Args:
        events: of a trace.
    """
    found: dict[tuple[int, str, int], str] = {}
    for event in events:
        if event.name == LINE:
            fields: dict[str, Any] = dict(event.fields)
            if {"file", "line", "text"} <= fields.keys():  # other layers may have the name, too
                found[event.rank, fields["file"], fields["line"]] = fields["text"]
    return found
