"""Writes a file of a recording through a mapping: it outlives whatever ends the rank."""

from __future__ import annotations

import mmap
import os
from threading import Lock
from typing import Final

from ompy.replay.entries import (
    END,
    HEAD,
    HEADER_SIZE,
    Header,
    checksum,
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
    """

    def __init__(self, path: str, header: Header) -> None:
        """Begin a new file.

        Raises:
            OSError: it cannot be written.
        """
        self.problem = ""
        self.written = HEADER_SIZE
        self._lock = Lock()
        self._owner = os.getpid()
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

    def append_entry(self, body: bytes) -> None:
        """Add an entry. Threads may call it; a forked child writes nothing."""
        with self._lock:
            if self.problem or os.getpid() != self._owner:
                return
            at = self.written
            end = at + HEAD.size + len(body)
            if end + HEAD.size > self._size:
                try:
                    self._grow_to(end)
                except (OSError, ValueError) as problem:
                    self.problem = str(problem)
                    return
            self._check = checksum(body, self._check)
            # the head last, and it is no longer than a word: who is killed in between leaves zeros
            self._map[at + HEAD.size : end] = body
            self._map[at : at + HEAD.size] = HEAD.pack(len(body), self._check)
            self.written = end

    def close(self) -> None:
        """The rank has ended: write END, and cut the file to its size. Harmless the second time."""
        if self._size and os.getpid() == self._owner:
            whole = not self.problem
            self.append_entry(bytes((END,)))
            self.problem = self.problem or "it is closed"
            self._map.close()
            if whole:
                os.ftruncate(self._file, self.written)
            os.close(self._file)
            self._size = 0
