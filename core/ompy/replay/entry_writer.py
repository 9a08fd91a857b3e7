"""Writes a file of a recording through a mapping: it outlives whatever ends the rank."""

from __future__ import annotations

import mmap
import os
from threading import Lock
from typing import Final
from zlib import crc32

from ompy.replay.entries import (
    END,
    HEAD,
    HEADER_SIZE,
    Header,
    first_checksum,
    header_bytes,
)

CHUNK: Final = 1 << 20  # bytes by which a file grows at first; arbitrary
CHUNK_MAX: Final = 1 << 26  # and later; arbitrary: few mappings of a large file
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class EntryWriter:
    """Writes one file.

    Attributes:
        problem: why nothing is written any more: there was no room; empty while it is.
        written: bytes.
        forked: this process is a child of the rank's, and writes nothing.
    """

    def __init__(self, path: str, header: Header) -> None:
        """Begin a new file.

        Raises:
            OSError: it cannot be written.
        """
        self.problem = ""
        self.written = HEADER_SIZE
        self._lock = Lock()
        self.forked = False
        os.register_at_fork(after_in_child=self._leave_to_parent)
        self._check = first_checksum(header)
        self._file = os.open(path, _FLAGS, 0o600)
        self._size = 0
        self._map: mmap.mmap
        self._grow_to(HEADER_SIZE)
        self._map[:HEADER_SIZE] = header_bytes(header)

    def _grow_to(self, least: int) -> None:
        """Have room for `least` bytes and a head more.

        Raises:
            OSError: the disk is full: a mapping without room would end the rank by a signal.
        """
        size = self._size
        while size < least + HEAD.size:
            size += min(max(CHUNK, size), CHUNK_MAX)
        os.posix_fallocate(self._file, self._size, size - self._size)
        if self._size:
            self._map.close()
        self._map = mmap.mmap(self._file, size)
        self._size = size

    def _leave_to_parent(self) -> None:
        """This process is a fork, and not the rank."""
        self.forked, self.problem = True, "a forked child is not the rank"
        self._lock = Lock()

    def append_entry(self, body: bytes) -> None:
        """Add an entry. Threads may call it; a forked child writes nothing."""
        with self._lock:
            if self.problem:
                return
            at = self.written
            end = at + HEAD.size + len(body)
            if end + HEAD.size > self._size:
                try:
                    self._grow_to(end)
                except (OSError, ValueError) as problem:
                    self.problem = str(problem)
                    return
            self._check = crc32(body, self._check) or 1  # `checksum`, without a call
            # the head last, and it is no longer than a word: who is killed in between leaves zeros
            self._map[at + HEAD.size : end] = body
            HEAD.pack_into(self._map, at, len(body), self._check)
            self.written = end

    def close(self) -> None:
        """The rank has ended: write END, and cut the file to its size. Harmless the second time."""
        if self._size and not self.forked:
            whole = not self.problem
            self.append_entry(bytes((END,)))
            self.problem = self.problem or "it is closed"
            self._map.close()
            if whole:
                os.ftruncate(self._file, self.written)
            os.close(self._file)
            self._size = 0
