"""What a probe waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ompy.frameworks.communicator import Communicator

    from ompy_components.pml.ob1.module import Ob1


class Look:
    """A probe's look: whether a message that fits is here, or never will be."""

    __slots__ = ("_ob1", "communicator", "source", "tag")

    def __init__(self, ob1: Ob1, communicator: Communicator, source: int, tag: int) -> None:
        self._ob1 = ob1
        self.communicator = communicator
        self.source = source
        self.tag = tag

    def __call__(self) -> bool:
        """Look."""
        return self._ob1.has(self.communicator, self.source, self.tag)
