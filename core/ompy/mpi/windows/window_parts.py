"""The parts of a window that its members reach without a call of its module, and places in them."""

from __future__ import annotations

from typing import Any, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc
from ompy.data.errors import MPIError
from ompy.data.message import Message
from ompy.frameworks.osc import Straight
from ompy.frameworks.osc_base.lent_parts import LentParts, lent_message
from ompy.frameworks.osc_base.target_messages import MOST, TargetMessages
from ompy.frameworks.osc_base.word_posts import WordPosts
from ompy.mpi.buffers.access import raw_bytes
from ompy.mpi.buffers.common_forms import fits
from ompy.mpi.windows.window_epochs import Epochs
from ompy.mpi.windows.window_numbers import Numbers, displacement_of, wanted_elements

_UNIT_MOST: Final = 1 << 20  # bytes; arbitrary: displacements of so many bytes are not common
_BEYOND: Final = 1 << 40  # as `raw.small` has it


@cclass
class WindowParts:
    """The members' parts, as one member reaches them."""

    _epochs: Epochs
    _lent: LentParts | None
    _members: int
    _messages: TargetMessages | None
    _parts: list[Any]
    _posts: WordPosts
    _sizes: list[Any]
    _units: list[Any]
    __slots__ = tuple(__annotations__)

    def __init__(self, found: Straight, units: list[int], epochs: Epochs) -> None:
        """Take what a module gives, bytes of a displacement of 1 of each member, and the epochs."""
        self._parts = found.parts
        lent = found.lent
        self._lent = lent
        self._sizes = [len(part) for part in found.parts] if lent is None else lent.sizes
        self._posts = found.posts
        self._units = units
        self._epochs = epochs
        self._members = len(found.parts)
        self._messages = found.messages

    @ccall
    def place_numbers(self, rank: Any, target: Any, data: Numbers) -> int:
        """The byte of a member's part where data go to; -1 where it is not common."""
        number: int = raw.small(rank)
        lent: LentParts | None = self._lent
        by_address: bool = lent is not None and lent.by_address
        at: int = displacement_of(target, data, by_address)
        if not 0 <= number < self._members or data.size <= 0 or at < 0:
            return -1
        if lent is not None and by_address:
            at = lent.find_bytes(number, at, data.size) if lent.covers(number) else -1
            return at if at >= 0 and self.may_access(number) else -1
        unit: int = self._units[number]
        size: int = self._sizes[number]
        if unit > _UNIT_MOST or at >= _BEYOND:
            return -1
        at *= unit
        if at + data.size > size or not self.may_access(number):
            return -1
        return at

    @ccall
    def elements(self, rank: Any, target: Any, mine: Message) -> Message | None:
        """The elements of a member's part where a message goes to; None where it is not common.

        Args:
            rank: whose part.
            target: the place there, as the user gives it.
            mine: the message, which has as many bytes.
        """
        number: int = raw.small(rank)
        lent: LentParts | None = self._lent
        by_address: bool = lent is not None and lent.by_address
        found: Message | None = wanted_elements(target, mine, by_address)
        if found is None or not 0 <= number < self._members:
            return None
        if lent is not None and by_address:
            return self._attached(lent, number, found)
        return self._in_part(number, found)

    @cfunc
    def _in_part(self, number: int, found: Message) -> Message | None:
        """The same where displacements are counted."""
        unit: int = self._units[number]
        room: int = self._sizes[number]
        if unit > _UNIT_MOST or found.origin >= _BEYOND:
            return None
        found.origin *= unit
        if not fits(found.layout, found.count, found.origin, room) or not self.may_access(number):
            return None
        lent: LentParts | None = self.elsewhere(number)
        if lent is None:
            found.memory = self._parts[number]
            return found
        return self._by_copies(lent, number, found)

    @cfunc
    def _by_copies(self, lent: LentParts, number: int, found: Message) -> Message | None:
        """Elements of a part that the kernel copies, behind what was asked for before."""
        if self._messages is not None and not self._messages.complete(number):
            return None
        return lent_message(lent, number, found.origin, found.count, found.layout)

    @cfunc
    def _attached(self, lent: LentParts, number: int, found: Message) -> Message | None:
        """The same in what a member has attached."""
        if not lent.covers(number):
            return None
        first, size = found.layout.span(found.count)
        at: int = lent.find_bytes(number, found.origin + first, size) if size else -1
        if at < 0 or not self.may_access(number):
            return None
        found.origin = at - first
        return self._by_copies(lent, number, found)

    @ccall
    def may_access(self, number: int) -> bool:
        """Whether a member may be accessed now, or in a moment, as it posts."""
        if self._epochs.allows(number):
            return True
        return self._epochs.is_target(number) and self._posts.take_post(number)

    @ccall
    def elsewhere(self, number: int) -> LentParts | None:
        """What reaches a member's part by copies; None where it is in this process."""
        lent: LentParts | None = self._lent
        return lent if lent is not None and lent.covers(number) else None

    @ccall
    def asks(self, number: int, size: int) -> TargetMessages | None:
        """What has a member do an operation on so many bytes by itself; None where nothing does."""
        messages: TargetMessages | None = self._messages
        if messages is None or size > MOST or self.elsewhere(number) is None:
            return None
        messages.poll()  # others that ask are as eager
        return messages

    @ccall
    def store_bytes(self, number: int, at: int, data: memoryview, size: int) -> bool:
        """Copy bytes to a member's part. False where that fails: the longer way says why."""
        lent: LentParts | None = self.elsewhere(number)
        if lent is None:
            raw.copy(self._parts[number], at, data, 0, size)
            return True
        messages: TargetMessages | None = self._messages
        if messages is not None and not messages.complete(number):
            return False
        try:
            lent.store_bytes(number, at, raw_bytes(data), size)
        except MPIError:
            return False
        return True

    @ccall
    def load_bytes(self, number: int, at: int, into: memoryview, size: int) -> bool:
        """Copy bytes from a member's part. False where that fails."""
        lent: LentParts | None = self.elsewhere(number)
        if lent is None:
            raw.copy(into, 0, self._parts[number], at, size)
            return True
        messages: TargetMessages | None = self._messages
        if messages is not None and not messages.complete(number):
            return False
        try:
            lent.load_bytes(number, at, raw_bytes(into), size)
        except MPIError:
            return False
        return True
