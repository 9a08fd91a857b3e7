"""Short messages to and from one peer.

A mailbox has a slot for each message it has credit for; a sender has so many credits, and gets one
back for each message that was released. What has arrived but is not visible yet is late.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ompy.frameworks.nic.gni import ReturnCode, SmsgAttributes

SLOT_ALIGNMENT: Final = 64  # arbitrary: a cache line
HEAD: Final = 64  # arbitrary: what a real mailbox keeps for itself


def slot_size(max_size: int) -> int:
    """Bytes of one message's place."""
    return -(-max_size // SLOT_ALIGNMENT) * SLOT_ALIGNMENT


def mailbox_size(max_credit: int, max_size: int) -> int:
    """Bytes of a mailbox."""
    return HEAD + max_credit * slot_size(max_size)


class Mailbox:
    """Where the short messages of one peer arrive."""

    def __init__(self, memory: memoryview, attributes: SmsgAttributes) -> None:
        """Use `memory`, which is all of the mailbox."""
        self._memory = memory
        self._credit = attributes.max_credit
        self._slot = slot_size(attributes.max_size)
        self._next = 0
        self._arrived: deque[memoryview] = deque()
        self._visible = 0
        self._open = False
        self.released = 0

    @property
    def waiting(self) -> int:
        """Messages that `take` could return, one after the other."""
        return self._visible

    def deliver(self, message: memoryview) -> None:
        """A message has arrived; it cannot be seen yet."""
        at = HEAD + self._next % self._credit * self._slot
        self._next += 1
        place = self._memory[at : at + len(message)]
        place[:] = message
        self._arrived.append(place)

    def show(self) -> None:
        """The next message that has arrived can be seen now."""
        self._visible += 1

    def take(self) -> tuple[ReturnCode, memoryview | None]:
        """The oldest message, if it can be seen."""
        if self._open:
            return ReturnCode.INVALID_STATE, None
        if not self._visible:
            return ReturnCode.NOT_DONE, None
        self._open = True
        return ReturnCode.SUCCESS, self._arrived[0]

    def release(self) -> ReturnCode:
        """Give back the place of the message taken last."""
        if not self._open:
            return ReturnCode.INVALID_STATE
        self._open = False
        self._arrived.popleft()
        self._visible -= 1
        self.released += 1
        return ReturnCode.SUCCESS
