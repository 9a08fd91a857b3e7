"""A rank's look at its own part of a window, where all that can be is tried.

Loads cannot be seen. But a program that loads what others change at the same time calls `Win.Sync`
before (MPI 4.1 12.4). So in a world that is explored this call reads the part by a command, whose
place among those of others is a choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.frameworks.osc import DYNAMIC, OscModule, Place

if TYPE_CHECKING:
    from ompy.data.request import Request
    from ompy.frameworks.osc_base.pending import Peer


class LookingOsc(OscModule):
    """A window whose `sync` is a look, within an epoch of locks.

    Attributes:
        rank: of this process in the window.
    """

    rank: int

    def peer(self, rank: int) -> Peer:
        """A member, as a target."""
        raise NotImplementedError

    def get(self, into: Message, target: int, place: Place) -> Request:
        """Begin to read."""
        raise NotImplementedError

    def sync(self) -> None:
        """What others stored can be loaded."""
        window = self.window
        line = window.communicator.context.direct
        if line is None or not line.explores or window.flavor == DYNAMIC or not window.memory:
            return
        if not self.peer(self.rank).must_lock and self.rank not in self.held():
            return
        # its first byte and its last: a read of both depends on all that is between
        last = len(window.memory) - 1
        ends = Layout([(0, 1), (last, 1)] if last else [(0, 1)], 0, last + 1, "x")
        room = memoryview(bytearray(ends.size))
        bytes_read = Layout([(0, ends.size)], 0, ends.size, "x")
        request = self.get(Message(room, 0, 1, bytes_read), self.rank, Place(0, 1, ends))
        window.communicator.context.engine.wait(request)
