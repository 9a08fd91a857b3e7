"""What the launcher's machine keeps of a host."""

from __future__ import annotations


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
