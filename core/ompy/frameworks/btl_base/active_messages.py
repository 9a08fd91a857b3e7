"""Who receives what comes under which tag."""

from __future__ import annotations

from ompy.frameworks.btl import TAGS, ReceiveCallback


class ActiveMessages:
    """The receive callbacks of one rank, by tag.

    Attributes:
        handlers: the callbacks, None where nobody has registered.
    """

    __slots__ = ("handlers",)

    def __init__(self) -> None:
        self.handlers: list[ReceiveCallback | None] = [None] * TAGS

    def register(self, tag: int, callback: ReceiveCallback) -> None:
        """From now on `callback` receives what comes under `tag`."""
        self.handlers[tag] = callback
