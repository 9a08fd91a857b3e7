"""Convertors: a message's bytes, addressed by offset, whatever memory they lie in.

A convertor is stateless: fragments may be packed and unpacked at any offset, in any order,
over any number of rails. Offsets and sizes are in packed bytes. The memory belongs to the
caller of the MPI function, who must leave it alone until the request completes.
"""

# ruff: noqa: SLF001 - what is made without `__init__` is set up by functions of this module

from __future__ import annotations

import contextlib
import mmap
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc, recycled
from ompy.data import borrowed
from ompy.data.receive_memory import POOLED_FROM, receive_memory

# A huge page of x86. Measured (Linux 6, fill of fresh memory): below it malloc's recycled memory
# wins, 48 us against 320 for 1 MiB; above it huge pages do, 1.9 ms against 2.1 for 16 MiB, 12
# against 29 for 64 MiB. A shared mapping gets none and takes 7.7 ms for 16 MiB.
HUGE_FROM: Final = 1 << 21
_PART: Final = 1 << 15  # bytes; arbitrary: stays in the nearest cache


@cclass
class Convertor:
    """The bytes of one message. Subclasses say where they are.

    Attributes:
        size: packed bytes there are to send, or room for to receive.
        view: all of them in one writable or read-only byte view, or None when they are
            not contiguous. The fast paths slice it instead of calling `pack` or `unpack`.
    """

    _view: memoryview[int] | None
    size: int
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.size = 0
        self._view = None

    @property
    def view(self) -> memoryview | None:
        """The same as `whole()`, which compiled callers find faster."""
        return self.whole()

    @view.setter
    def view(self, view: memoryview | None) -> None:
        self._view = view

    @ccall
    def whole(self) -> memoryview | None:
        """All of the message in one byte view, or None when it is not contiguous."""
        return self._view

    @ccall
    def bind(self, length: int) -> None:
        """Told once, when a receive is matched: a message of `length` bytes is coming."""

    @ccall
    def keep(self, offset: int) -> None:
        """Told in a buffered send: the bytes from `offset` on are still to be sent later.

        Those before are sent. `BufferedConvertor` copies the rest; other memory stays anyway.
        """

    @ccall
    def pack(self, offset: int, target: memoryview) -> int:
        """Copy bytes from `offset` on into `target`, until either ends.

        Args:
            offset: packed byte to begin at.
            target: writable byte view; its length bounds the copy.

        Returns:
            Bytes copied.
        """
        raise NotImplementedError

    @ccall
    def unpack(self, offset: int, source: memoryview) -> int:
        """Copy `source` to the bytes from `offset` on; what lies beyond `size` is dropped.

        Returns:
            Bytes stored.
        """
        raise NotImplementedError

    @ccall
    def tail(self) -> memoryview | None:
        """The one piece of memory that the message ends with, if there is one; `view` if all is."""
        return self.whole()

    @ccall
    def pack_at(self, target: memoryview, at: int, count: int) -> None:
        """Copy the first `count` bytes to byte `at` of `target`, where there is room for them."""
        self.pack(0, target[at : at + count])

    @ccall
    def pack_streamed(self, target: memoryview, at: int, count: int) -> None:
        """Copy as `pack_at` does, for another core to read: past this one's cache.

        What is in pieces is packed beside first. Source: net/README.md, "Copies that another core
        reads".
        """
        stream_part(self, 0, target, at, count)

    @ccall
    def unpack_from(self, source: memoryview, start: int, count: int) -> int:
        """Copy `count` bytes of `source` from byte `start` on to the beginning of the message.

        Returns:
            Bytes stored; what lies beyond `size` is dropped.
        """
        return self.unpack(0, source[start : start + count])


@recycled
@cclass
class ContiguousConvertor(Convertor):
    """A message that is one piece of memory."""

    __slots__ = ()

    def __init__(self, view: memoryview) -> None:
        """Take a byte view (format B, contiguous) of the whole message."""
        self._view = view
        self.size = len(view)

    @ccall
    def pack(self, offset: int, target: memoryview) -> int:
        """Copy bytes from `offset` on into `target`."""
        view = self.whole()
        assert view is not None
        count = min(self.size - offset, len(target))
        if count > 0:
            raw.copy(target, 0, view, offset, count)
        return count

    @ccall
    def unpack(self, offset: int, source: memoryview) -> int:
        """Copy `source` to the bytes from `offset` on."""
        view = self.whole()
        assert view is not None
        count = min(self.size - offset, len(source))
        if count <= 0:
            return 0
        raw.copy(view, offset, source, 0, count)
        return count

    @ccall
    def pack_at(self, target: memoryview, at: int, count: int) -> None:
        """Copy from the beginning."""
        view = self._view
        assert view is not None
        assert count <= self.size, "there are not so many bytes"
        raw.copy(target, at, view, 0, count)

    @ccall
    def pack_streamed(self, target: memoryview, at: int, count: int) -> None:
        """Copy from the beginning, past the cache."""
        view = self.whole()
        assert view is not None
        assert count <= self.size, "there are not so many bytes"
        raw.stream(target, at, view, 0, count)

    @ccall
    def unpack_from(self, source: memoryview, start: int, count: int) -> int:
        """Copy to the beginning."""
        view = self._view
        assert view is not None
        count = min(self.size, count)
        raw.copy(view, 0, source, start, count)
        return count


@recycled
@cclass
class LentConvertor(ContiguousConvertor):
    """A message in a user's buffer, taken as it is: a view is made when somebody asks for one.

    Of small messages nobody does, and compiled a view would be a quarter of their cost.
    """

    _lent: borrowed.Lent
    _owner: Any
    __slots__ = tuple(__annotations__)

    @ccall
    def whole(self) -> memoryview | None:
        """All of the message."""
        view = self._view
        if view is None and borrowed.is_lent(self._lent):
            view = borrowed.view_of(self._lent, self._owner)
            if raw.size(view) > self.size:  # the message is the beginning of the buffer
                view = view[: self.size]
            self._view = view
        return view

    @ccall
    def pack(self, offset: int, target: memoryview) -> int:
        """Copy bytes from `offset` on into `target`; from the beginning, without a view."""
        if offset:
            return ContiguousConvertor.pack(self, offset, target)
        count = min(self.size, raw.size(target))
        borrowed.copy_out(self._lent, target, 0, count)
        return count

    @ccall
    def unpack(self, offset: int, source: memoryview) -> int:
        """Copy `source` to the bytes from `offset` on; to the beginning, without a view."""
        if offset:
            return ContiguousConvertor.unpack(self, offset, source)
        return self.unpack_from(source, 0, raw.size(source))

    @ccall
    def pack_at(self, target: memoryview, at: int, count: int) -> None:
        """Copy from the beginning."""
        assert count <= self.size, "there are not so many bytes"
        borrowed.copy_out(self._lent, target, at, count)

    @ccall
    def pack_streamed(self, target: memoryview, at: int, count: int) -> None:
        """Copy from the beginning, past the cache."""
        assert count <= self.size, "there are not so many bytes"
        borrowed.stream_out(self._lent, target, at, count)

    @ccall
    def unpack_from(self, source: memoryview, start: int, count: int) -> int:
        """Copy to the beginning."""
        count = min(self.size, count)
        borrowed.copy_in(self._lent, source, start, count)
        return count

    def __dealloc__(self) -> None:
        # Called where this is compiled, with the error under way put aside; a view gives the buffer
        # back itself. What is the user's goes here: its end may be code of his, and what goes after
        # this does so with the error set, which that code would lose.
        borrowed.give_back(self._lent)
        self._owner = None
        self._view = None


@ccall
def lent(buffer: Any, writable: bool) -> LentConvertor | None:
    """A convertor of a user's contiguous buffer of numbers; None for whatever else it may be.

    Args:
        buffer: of the user; it stays locked against resizing while the convertor lives.
        writable: a buffer that must not be written to is none.
    """
    return _lent_convertor(borrowed.borrow(buffer, writable), buffer)


@ccall
def lent_bytes(buffer: Any, writable: bool) -> LentConvertor | None:
    """The same of a buffer whose datatype is given apart: it may be of records, of text."""
    return _lent_convertor(borrowed.borrow_bytes(buffer, writable), buffer)


@cfunc
def _lent_convertor(taken: borrowed.Lent, buffer: Any) -> LentConvertor | None:
    made: LentConvertor = LentConvertor.__new__(LentConvertor)
    made._lent = taken
    if not borrowed.is_lent(made._lent):
        return None
    made._owner = buffer
    made._view = None
    made.size = borrowed.size(made._lent)
    return made


@ccall
def contiguous(view: memoryview) -> ContiguousConvertor:
    """A convertor of one piece of memory. Made without `__init__`, as every message needs one."""
    made: ContiguousConvertor = ContiguousConvertor.__new__(ContiguousConvertor)
    made._view = view
    made.size = len(view)
    return made


@ccall
def scratch_memory(length: int) -> memoryview:
    """Writable memory for a while, not cleared."""
    return memoryview(raw.room(length)) if length < POOLED_FROM else receive_memory(length)


@ccall
def copied(source: Convertor) -> ContiguousConvertor:
    """A convertor of a copy of a message."""
    made: ContiguousConvertor = ContiguousConvertor.__new__(ContiguousConvertor)
    view: memoryview = scratch_memory(source.size)
    source.pack_at(view, 0, source.size)
    made._view = view
    made.size = source.size
    return made


@ccall
def stream_part(source: Convertor, offset: int, target: memoryview, at: int, count: int) -> None:
    """Copy a part of a message for another core to read: past this core's cache.

    Args:
        source: the message. What is in pieces is packed beside first.
        offset: of the part in it.
        target: where to, in format B.
        at: which byte of it.
        count: bytes that there are.
    """
    view = source.whole()
    if view is not None:
        raw.stream(target, at, view, offset, count)
        return
    beside = memoryview(raw.room(min(count, _PART)))
    done: int = 0
    while done < count:
        part: int = min(count - done, _PART)
        packed: int = source.pack(offset + done, beside if part == _PART else beside[:part])
        raw.stream(target, at + done, beside, 0, packed)
        done += packed


@recycled
@cclass
class GrowingConvertor(LentConvertor):
    """Room for one message of any length, made when the message is known.

    After `bind` the memory is `owner`; it lives as long as anyone holds a view of it.
    """

    __slots__ = ()

    def __init__(self) -> None:
        self._view = None
        self._owner = None
        self._lent = borrowed.nothing()
        self.size = 0

    @ccall
    def owner(self) -> Any:
        """What the message is in: a `bytearray`, or for long ones a byte view."""
        return self._owner

    @ccall
    def bind(self, length: int) -> None:
        """Have `length` writable bytes."""
        self.size = length
        owner = raw.room(length) if length < POOLED_FROM else receive_memory(length)
        borrowed.give_back(self._lent)
        self._lent = borrowed.borrow(owner, True)
        self._owner = owner
        self._view = None


@ccall
def growing() -> GrowingConvertor:
    """Room for a message of any length. Made without `__init__`."""
    made: GrowingConvertor = GrowingConvertor.__new__(GrowingConvertor)
    made._view = None
    made._owner = None
    made._lent = borrowed.nothing()
    made.size = 0
    return made


@recycled
@cclass
class GatherConvertor(Convertor):
    """Several pieces of memory sent as one message; send side only."""

    _pieces: list[memoryview[int]]
    _starts: list[int]
    __slots__ = tuple(__annotations__)

    def __init__(self, pieces: Sequence[memoryview]) -> None:
        """Take byte views (format B, contiguous) in the order they are to be sent."""
        self._view = None
        self._pieces = list(pieces)
        self._starts = []
        self.size = 0
        for piece in self._pieces:
            self._starts.append(self.size)
            self.size += len(piece)

    @ccall
    def pack(self, offset: int, target: memoryview) -> int:
        """Copy bytes from `offset` on into `target`, across pieces."""
        done = 0
        index = bisect_right(self._starts, offset) - 1
        while done < len(target) and index < len(self._pieces):
            piece = self._pieces[index]
            begin = offset + done - self._starts[index]
            count = min(len(piece) - begin, len(target) - done)
            target[done : done + count] = piece[begin : begin + count]
            done += count
            index += 1
        return done

    @ccall
    def tail(self) -> memoryview | None:
        """The last piece."""
        return self._pieces[-1]


@ccall
def export_views(kind: Any) -> bool:
    """Have instances of a class export the view that is their `_view`, where this is compiled.

    By the class's own way an exported buffer takes 3 us, by this 0.1.

    Args:
        kind: a class written in Python; what it exports belongs to its instances.
    """
    return borrowed.export_views(kind)


def allocate_memory(length: int) -> memoryview:
    """Fresh writable memory of `length` bytes; large blocks on huge pages where there are any."""
    if length < HUGE_FROM:
        return memoryview(bytearray(length))
    block = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages: ordinary ones do
            block.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(block)
