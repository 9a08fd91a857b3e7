"""What a window does besides where all that can be is tried: looks at the own part, and requests.

Loads cannot be seen. But a program that loads what others change at the same time calls `Win.Sync`
before (MPI 4.1 12.4). So in a world that is explored this call reads the part by a command, whose
place among those of others is a choice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.frameworks.direct import DirectRequest
from ompy.frameworks.osc import DYNAMIC, OscModule, Place

if TYPE_CHECKING:
    from ompy.data.request import Request
    from ompy.frameworks.osc_base.pending import Peer


class LookingOsc(OscModule):
    """A window whose `sync` is a look, within an epoch of locks; and whose requests are watched.

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

    def watched(self, begun: Request, target: int) -> Request:
        """The world says when a program is told of its end; who waits for it here, is told, too."""
        communicator = self.window.communicator
        line = communicator.context.direct
        if line is None or not line.explores:
            return begun
        with communicator.context.engine.lock:
            peer = self.peer(target)
            parts = [receive for pending, receive in peer.awaited.values() if pending is begun]
            numbers = [one.number for one in parts if isinstance(one, DirectRequest)]
            request = line.watch_begun(communicator.context_id, begun, numbers)
            peer.open.discard(begun)
            if not request.complete:
                peer.open.add(request)
                request.notify(partial(peer.open.discard, request))
        return request

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
