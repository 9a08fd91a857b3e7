"""What the launcher's machine keeps of a host."""

from __future__ import annotations

from typing import Final

from ompy.runtime.connections.control import OUTPUT_WINDOW

_CREDIT_STEP: Final = OUTPUT_WINDOW // 8  # bytes; arbitrary: few messages, window never shut long


class Host:
    """A host, by its agent, wherever that is in the tree.

    Attributes:
        node: its index.
        name: its name.
        done: the agent has finished, or it has gone.
        known: so many ranks the job has to have where it finishes.
        uncredited: bytes of its output that it was not told of.
    """

    def __init__(self, node: int, name: str) -> None:
        self.node = node
        self.name = name
        self.done = False
        self.known = 0
        self.uncredited = 0

    def written(self, size: int) -> int:
        """Bytes of its output have been written: those that it is to be told of now, if any."""
        self.uncredited += size
        if self.uncredited < _CREDIT_STEP:
            return 0
        credit, self.uncredited = self.uncredited, 0
        return credit

    def expects(self, ranks: int) -> None:
        """Ranks are to be started there; the job has so many with them."""
        self.done, self.known = False, ranks
