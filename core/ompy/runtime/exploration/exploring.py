"""How a world is explored, as whoever runs it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ompy.runtime.exploration.boxes import Operation
from ompy.runtime.exploration.call_journal import Call
from ompy.runtime.exploration.events import Value
from ompy.runtime.exploration.windows.parts import Parts


class Exploring(NamedTuple):
    """How a world is explored.

    Attributes:
        script: what is chosen where, by operation.
        buffers: standard sends are complete at once; else when they are matched.
        polls: how often in a row a poll finds nothing although it could find something.
        calls: what each rank has to begin, as far as it came; None where that is not known.
        lines: in the same lines.
        parts: what is known of windows; None if nothing is.
    """

    script: Mapping[Operation, Value]
    buffers: bool = True
    polls: int = 1
    calls: Sequence[Sequence[Call]] | None = None
    lines: bool = False
    parts: Parts | None = None
