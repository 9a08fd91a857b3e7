"""memset: a request has the other rank do it, and its reply says that it is done.

Source: reference gasnet.md 6.9 (memset).
"""

# ruff: noqa: SLF001 - handles and ranks are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

from ompy.frameworks.conduit import EXTENDED_HANDLERS, Category, Token, Transfer
from ompy.gasnet.errors import BadArgument
from ompy.gasnet.handles import INVALID_HANDLE, Handle
from ompy.gasnet.messages import LARGEST
from ompy.gasnet.rank import check_integers
from ompy.gasnet.values import Values

FILL: Final = EXTENDED_HANDLERS[0]
FILLED: Final = EXTENDED_HANDLERS[1]
PIECE: Final = 65_536  # bytes written at once; arbitrary: they fit a processor's cache
_LOW: Final = 0xFFFF_FFFF  # reference gasnet.md 1: bits of one argument


class Fills(Values):
    """memset, in all its forms."""

    def memset(self, node: int, offset: int, value: int, size: int) -> None:
        """Set `size` bytes of a rank's segment to a value of 0 to 255.

        Raises:
            BadArgument: the place is not in the segment, the value is no byte, or this thread may
                not communicate now.
            ResourceError: the peer is gone.
        """
        handle = self.memset_nb(node, offset, value, size)
        if not handle.complete:
            self._wait(handle)
        handle._release()

    def memset_nb(self, node: int, offset: int, value: int, size: int) -> Handle:
        """Begin to; with a handle. Raises as `memset`."""
        if self._filled_here(node, offset, value, size):
            return INVALID_HANDLE
        handle = self._state().new_handle()
        try:
            self._begin_fill(node, offset, value, size, handle)
        except BaseException:
            handle._release()
            raise
        return handle

    def memset_nbi(self, node: int, offset: int, value: int, size: int) -> None:
        """Begin to; an implicit put. Raises as `memset`."""
        if self._filled_here(node, offset, value, size):
            return
        operations = self._state().current()
        operations.begin_transfer(is_get=False)
        try:
            self._begin_fill(node, offset, value, size, operations)
        except BaseException:
            operations.done(is_get=False)
            raise

    def _filled_here(self, node: int, offset: int, value: int, size: int) -> bool:
        """Whether nobody else is needed; it has been done then."""
        check_integers(value, size)
        if size < 0:
            raise BadArgument(f"{size} bytes cannot be filled")
        self._check_place(node, offset, size)
        if not 0 <= value <= 0xFF:
            raise BadArgument(f"{value} is no byte")
        if node == self._me:
            fill_memory(self._segment.memory, offset, value, size)
        return node == self._me or not size

    def _begin_fill(
        self, node: int, offset: int, value: int, size: int, transfer: Transfer
    ) -> None:
        number = next(self._fill_numbers) & LARGEST
        self._filling[number] = transfer
        words = [number, value, *halves(offset), *halves(size)]
        try:
            self._send_request(Category.SHORT, node, FILL, words)
        except BaseException:
            del self._filling[number]
            raise

    def _prepare_fills(self) -> None:
        """Have the handlers in the table."""
        self._filling: dict[int, Transfer] = {}
        self._fill_numbers = count(1)
        self._add_handler(FILL, self._on_fill)
        self._add_handler(FILLED, self._on_filled)

    def _on_fill(self, token: Token, _payload: memoryview, words: Sequence[int]) -> None:
        number, value, *places = words
        fill_memory(
            self._segment.memory, joined_number(*places[:2]), value, joined_number(*places[2:])
        )
        self._send_reply(Category.SHORT, token, FILLED, [number])

    def _on_filled(self, _token: Token, _payload: memoryview, words: Sequence[int]) -> None:
        self._filling.pop(words[0]).done(is_get=False)


def fill_memory(memory: memoryview, offset: int, value: int, size: int) -> None:
    """Set bytes of memory."""
    pattern = bytes([value]) * min(size, PIECE)
    for begin in range(offset, offset + size, PIECE):
        piece = min(PIECE, offset + size - begin)
        memory[begin : begin + piece] = pattern[:piece]


def halves(number: int) -> tuple[int, int]:
    """A number of 63 bits as two arguments, which have signs."""
    low = number & _LOW
    return number >> 32, low - _LOW - 1 if low > LARGEST else low


def joined_number(high: int, low: int) -> int:
    """The number that was cut in two."""
    return high << 32 | low & _LOW
