"""Messages of any size between two groups, through the memory of both together."""

from __future__ import annotations

from typing import Any

from ompy.compiled import ccall, cclass
from ompy.frameworks.collectives.group_edges import GroupEdges
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.unsized import UnsizedMessages


@cclass
class MessagesBetween(UnsizedMessages):
    """Those of both groups together, along edges between ranks of the two.

    Attributes:
        carrier: of both groups together.
    """

    _edges: GroupEdges
    carrier: UnsizedMessages
    __slots__ = tuple(__annotations__)

    def __init__(self, carrier: UnsizedMessages, edges: GroupEdges) -> None:
        """Begin with what both groups have together, and the edges between them there."""
        self.carrier = carrier
        self._edges = edges
        self.room = carrier.room
        self.block_room = carrier.block_room

    @ccall
    def begun(self) -> int:
        """As of both together."""
        return self.carrier.begun()

    @ccall
    def give_up(self, code: int) -> None:
        """Take no part in the next call."""
        self.carrier.give_up(code)

    @ccall
    def edge_room(self, edges: Neighbours) -> int:
        """Bytes up to which a message along these edges may go this way."""
        return self.carrier.edge_room(self._edges.shifted(edges))

    @ccall
    def along(self, said: list[Any], edges: Neighbours) -> list[Any]:
        """What comes along each edge; a member waits for its sources alone."""
        return self.carrier.along(said, self._edges.shifted(edges))
