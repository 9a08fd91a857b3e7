"""Reads and writes of one rank by itself.

What is in one piece in memory and in the file moves without a copy. Reading with gaps reads blocks
and takes from them what is seen (data sieving), where that is dense; writing never touches a gap,
so each run is a call to the system.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ompy.data.convertor import Convertor
from ompy.frameworks.io import Access
from ompy.frameworks.io_base.view import FileView
from ompy.net.storage import StoredFile

CHUNK: Final = 4 << 20  # bytes; arbitrary: fits a large cache, and a call to the system is nothing
# Measured: a call of preadv from here costs as much as copying some 4 KiB from the page cache. What
# lies thinner in the file than that is read run by run.
SIEVED_RUN: Final = 4096
assert SIEVED_RUN < CHUNK
# arbitrary: the system's work for a piece is less than copying so much
VECTORED_RUN: Final = 4096


def write_through(file: StoredFile, view: FileView, access: Access, *, atomic: bool) -> None:
    """Write a rank's bytes through its view.

    Args:
        file: to be written.
        view: of the rank.
        access: the bytes, and where.
        atomic: nobody sees a part of them.

    Raises:
        MPIError: what the system says.
    """
    with _alone(file, view, access, exclusive=True) if atomic else _nobody():
        memory = _runs_in_memory(view, access)
        if memory is not None:
            for where, pieces, _ in _pairs(view, access, memory):
                file.write_pieces(pieces, where)
            return
        for begin, piece in _pieces_of(access.convertor):
            at = access.begin + begin
            for where, start, length in view.runs(at, at + len(piece)):
                file.write_from(piece[start : start + length], where)


def read_through(file: StoredFile, view: FileView, access: Access, *, atomic: bool) -> int:
    """Read a rank's bytes through its view, as far as the file goes. The arguments are as above.

    Returns:
        Bytes read.
    """
    convertor = access.convertor
    if not convertor.size:
        return 0
    with _alone(file, view, access, exclusive=False) if atomic else _nobody():
        whole = convertor.view
        if whole is not None:
            return _read(file, view, access.begin, whole)
        memory = _runs_in_memory(view, access)
        if memory is not None:
            return _read_pieces(file, view, access, memory)
        room = memoryview(bytearray(min(CHUNK, convertor.size)))
        done = 0
        while done < convertor.size:
            asked = room[: convertor.size - done]
            took = _read(file, view, access.begin + done, asked)
            convertor.unpack(done, asked[:took])
            done += took
            if took < len(asked):
                break
        return done


def is_dense(view: FileView) -> bool:
    """Whether reading through a view takes blocks of the file, and not run by run."""
    runs = max(1, view.size // view.run) if view.run else 1
    return view.ordered and view.layout.extent < SIEVED_RUN * runs


def _runs_in_memory(view: FileView, access: Access) -> FileView | None:
    """The message as a view of its memory, where its runs and the file's are long; else None."""
    message = access.message
    if message is None or access.convertor.view is not None:
        return None
    memory = FileView(message.origin, message.layout)
    long = memory.run >= VECTORED_RUN and (view.contiguous or view.run >= VECTORED_RUN)
    return memory if long else None


def _pairs(
    view: FileView, access: Access, memory: FileView
) -> Iterator[tuple[int, list[memoryview], int]]:
    """The runs in the file, what of the memory goes there, and how many bytes that are."""
    assert access.message is not None, "who has runs in memory has a message"
    whole = access.message.memory
    for where, start, length in view.runs(access.begin, access.begin + access.convertor.size):
        runs = memory.runs(start, start + length)
        yield where, [whole[at : at + size] for at, _, size in runs], length


def _read_pieces(file: StoredFile, view: FileView, access: Access, memory: FileView) -> int:
    done = 0
    for where, pieces, length in _pairs(view, access, memory):
        took = file.read_pieces(pieces, where)
        done += took
        if took < length:
            break
    return done


def _pieces_of(convertor: Convertor) -> Iterator[tuple[int, memoryview]]:
    """The bytes of a message in order: all at once where they are in one piece, else copied."""
    whole = convertor.view
    if whole is not None:
        yield 0, whole
        return
    room = memoryview(bytearray(min(CHUNK, convertor.size)))
    for begin in range(0, convertor.size, CHUNK):
        took = convertor.pack(begin, room)
        yield begin, room[:took]


def _read(file: StoredFile, view: FileView, begin: int, into: memoryview) -> int:
    """Read positions from `begin` on, until `into` is full or the file ends."""
    if view.contiguous:
        return file.read_into(into, view.byte_at(begin))
    if is_dense(view):
        return _sieve(file, view, begin, into)
    done = 0
    for where, start, length in view.runs(begin, begin + len(into)):
        took = file.read_into(into[start : start + length], where)
        done += took
        if took < length:
            break
    return done


def _sieve(file: StoredFile, view: FileView, begin: int, into: memoryview) -> int:
    """The same by blocks of the file."""
    end = begin + len(into)
    last = view.byte_at(end - 1) + 1
    block = memoryview(bytearray(min(CHUNK, last - view.byte_at(begin))))
    at = begin
    while at < end:
        first = view.byte_at(at)
        asked = block[: last - first]
        took = file.read_into(asked, first)
        until = min(end, view.position_at(first + took))
        if until > at:
            view.gather(asked, first, at, into[at - begin : until - begin])
        at = until
        if took < len(asked):
            break
    return at - begin


@contextmanager
def _alone(file: StoredFile, view: FileView, access: Access, *, exclusive: bool) -> Iterator[None]:
    """While a lock keeps others from what an access touches."""
    size = access.convertor.size
    if not size:
        yield
        return
    if view.ordered:
        first = view.byte_at(access.begin)
        span = view.byte_at(access.begin + size - 1) + 1 - first
    else:
        first, span = 0, 0  # all of the file
    file.lock(first, span, exclusive=exclusive)
    try:
        yield
    finally:
        file.unlock(first, span)


@contextmanager
def _nobody() -> Iterator[None]:
    yield
