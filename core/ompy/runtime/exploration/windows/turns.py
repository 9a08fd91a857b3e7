"""Names that ranks publish and look up: whose turn it is. An order as that of a window's bytes.

What answers is outside of the exchange, and serves who comes first. So a rank asks for its turn,
and then for the name. Each name is a byte of its own of a window that nobody has. Pure.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from ompy.data.constants import ANY_SOURCE
from ompy.data.layout import BYTES
from ompy.frameworks.osc_base.headers import COMMAND_TAG, Command, Kind
from ompy.frameworks.osc_base.layouts import encode_layout
from ompy.runtime.exploration.boxes import Receive
from ompy.runtime.exploration.windows.box import WindowBox
from ompy.runtime.exploration.windows.parts import Place

NOBODY: Final = -1  # no rank: who has the window
TURNS: Final[Place] = (0, NOBODY)


class TurnBox(WindowBox):
    """The turns that ranks have asked for."""

    def __init__(self) -> None:
        super().__init__(*TURNS)

    def listening(self) -> Receive:
        """What takes the next: it is always there."""
        return Receive((NOBODY, 0), ANY_SOURCE, COMMAND_TAG, past=0, site="")


def turn_command(name: str, *, changes: bool) -> Command:
    """What a rank asks for that wants its turn at a name.

    Args:
        name: in words. Two that have the same byte have an order that they need not have.
        changes: the rank changes what others find.
    """
    kind = Kind.PUT if changes else Kind.GET
    return Command(kind, displacement=crc32(name.encode()), number=1, layout=encode_layout(BYTES))
