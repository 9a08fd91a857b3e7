"""Writes a file of a recording through a mapping: it outlives whatever ends the rank.

Compiled with the others on the way of a message: the event of a wildcard is put together in words
and copied to its place.
"""

from __future__ import annotations

import mmap
import os
from threading import Lock
from typing import TYPE_CHECKING
from zlib import crc32

from ompy import raw
from ompy.compiled import U64, ccall, cclass
from ompy.replay.entries import (
    END,
    HEADER_SIZE,
    Header,
    first_checksum,
    header_bytes,
)
from ompy.replay.events import LOOKED_TAG

if TYPE_CHECKING:
    from typing import Any

CHUNK = 1 << 20  # bytes by which a file grows at first; arbitrary
CHUNK_MAX = 1 << 26  # and later; arbitrary: few mappings of a large file
WORD = 8  # bytes; an entry begins at a multiple of them, so that its head is written at once
U32 = 0xFFFFFFFF  # values of 32 bits
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


@cclass
class EntryWriter:
    """Writes one file.

    Attributes:
        held: of its owner, who has an event that comes first and may go on: a no that is counted.
        problem: why nothing is written any more: there was no room; empty while it is.
        written: bytes.
        forked: this process is a child of the rank's, and writes nothing.
    """

    _check: int
    _file: int
    _lock: Any
    _map: Any
    _size: int
    _view: Any
    forked: bool
    held: bool
    problem: str
    written: int
    __slots__ = (*__annotations__, "__weakref__")

    def __init__(self, path: str, header: Header) -> None:
        """Begin a new file.

        Raises:
            OSError: it cannot be written.
        """
        self.problem = ""
        self.written = HEADER_SIZE
        self._lock = Lock()
        self.forked = self.held = False
        os.register_at_fork(after_in_child=self._leave_to_parent)
        self._check = first_checksum(header)
        self._file = os.open(path, _FLAGS, 0o600)
        self._size = 0
        self._map = self._view = None
        self._grow_to(HEADER_SIZE)
        self._view[:HEADER_SIZE] = header_bytes(header)

    def _grow_to(self, least: int) -> None:
        """Have room for `least` bytes and a head more.

        Raises:
            OSError: the disk is full: a mapping without room would end the rank by a signal.
        """
        size: int = self._size
        while size < least + WORD:
            size += min(max(CHUNK, size), CHUNK_MAX)
        os.posix_fallocate(self._file, self._size, size - self._size)
        self._unmap()
        self._map = mmap.mmap(self._file, size)
        self._view = memoryview(self._map)
        self._size = size

    def _unmap(self) -> None:
        if self._map is not None:
            self._view.release()
            self._map.close()

    def _leave_to_parent(self) -> None:
        """This process is a fork, and not the rank."""
        self.forked, self.problem = True, "a forked child is not the rank"
        self._lock = Lock()

    @ccall
    def append_entry(self, body: bytes) -> None:
        """Add an entry. Threads may call it; a forked child writes nothing."""
        with self._lock:
            if self.problem:
                return
            length: int = len(body)
            at: int = self.written
            end: int = (at + WORD + length + WORD - 1) // WORD * WORD
            if end + WORD > self._size:
                try:
                    self._grow_to(end)
                except (OSError, ValueError) as problem:
                    self.problem = str(problem)
                    return
            check: int = crc32(body, self._check) or 1  # `checksum`, without a call
            self._check = check
            # the head last, and it is one word: who is killed in between leaves zeros
            raw.copy(self._view, at + WORD, body, 0, length)
            head: U64 = check
            raw.put_word(self._view, at, head << 32 | length)
            self.written = end

    @ccall
    def append_look(
        self, site: int, calls: int, digest: int, how: int, comm: int,
        wanted_source: int, wanted_tag: int, source: int, tag: int, length: int,
    ) -> None:  # fmt: skip
        """Add what a receive got, or a probe found: the entry of an `events.Looked`.

        Args:
            site: number of the line of the program.
            calls: before it.
            digest: of these.
            how: one of `events.HOW`.
            comm: number of the communicator.
            wanted_source: as the program has given it.
            wanted_tag: likewise.
            source: of the message.
            tag: of the message.
            length: of the message, in bytes.
        """
        begun: U64 = site
        mixed: U64 = digest
        wished: U64 = wanted_source & U32
        sender: U64 = source & U32
        body = raw.six_words(
            begun << 32 | how << 8 | LOOKED_TAG,
            mixed << 32 | calls,
            wished << 32 | comm,
            sender << 32 | (wanted_tag & U32),
            tag & U32,
            length,
        )
        self.append_entry(body)

    def close(self) -> None:
        """The rank has ended: write END, and cut the file to its size. Harmless the second time."""
        if self._size and not self.forked:
            whole = not self.problem
            self.append_entry(bytes((END,)))
            self.problem = self.problem or "it is closed"
            self._unmap()
            self._map = None
            if whole:
                os.ftruncate(self._file, self.written)
            os.close(self._file)
            self._size = 0
