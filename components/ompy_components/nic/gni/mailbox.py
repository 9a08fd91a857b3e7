"""Short messages to and from one peer.

A mailbox has a slot for each message it has credit for; a sender has so many credits, and gets one
back for each message that was released. Messages may arrive in any order, each with its event, and
can be seen in theirs: one that has overtaken another waits for it.
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
    """Where the short messages of one peer arrive.

    Attributes:
        released: messages that were, in all.
    """

    def __init__(self, memory: memoryview, attributes: SmsgAttributes) -> None:
        """Use `memory`, which is all of the mailbox."""
        self._memory = memory
        self._credit = attributes.max_credit
        self._slot = slot_size(attributes.max_size)
        self._taken = 0  # places given to messages, in all
        self._visible = 0  # messages that can be seen, or have been
        self._early: set[int] = set()  # those that have overtaken others
        self._messages: deque[memoryview] = deque()
        self._open = False
        self.released = 0

    @property
    def waiting(self) -> bool:
        """Whether a message can be seen."""
        return self._visible != self.released

    def deliver(self, message: memoryview) -> int:
        """Take a message's bytes. Returns its number, for `show`."""
        number = self._taken
        at = HEAD + number % self._credit * self._slot
        self._taken += 1
        place = self._memory[at : at + len(message)]
        place[:] = message
        self._messages.append(place)
        return number

    def show(self, number: int) -> None:
        """A message has arrived: it can be seen when all before it have."""
        if number == self._visible and not self._early:
            self._visible += 1
            return
        self._early.add(number)
        while self._visible in self._early:
            self._early.remove(self._visible)
            self._visible += 1

    def take_oldest(self) -> tuple[ReturnCode, memoryview | None]:
        """The oldest message, if it can be seen."""
        if self._open:
            return ReturnCode.INVALID_STATE, None
        if self._visible == self.released:
            return ReturnCode.NOT_DONE, None
        self._open = True
        return ReturnCode.SUCCESS, self._messages[0]

    def release(self) -> ReturnCode:
        """Give back the place of the message taken last."""
        if not self._open:
            return ReturnCode.INVALID_STATE
        self._open = False
        self._messages.popleft()
        self.released += 1
        return ReturnCode.SUCCESS
