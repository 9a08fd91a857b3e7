"""The launcher's end of a live view: its socket, and those who have come to watch.

One line of JSON is a question, one is its answer; the first line has the key. Who is another user,
does not have the key or says something else is sent away. Nobody here waits: a watcher that does
not read is closed.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from ompy.engine.reactor import Cancellable, Loop
from ompy.runtime.launching.job_sockets import (
    KEY_SIZE,
    JobName,
    listen_in,
    open_folder,
    remove_files,
)

WATCHERS: Final = 8  # at once; arbitrary: terminals of one user
AGAIN: Final = 1.0  # s; arbitrary: until there may be a descriptor again
LINE_MAX: Final = 4096  # bytes of a question; arbitrary: it is a word
UNREAD_MAX: Final = 64 * 1024 * 1024  # bytes; arbitrary: several answers of thousands of ranks
READ_SIZE: Final = 4096  # bytes; arbitrary: a question is shorter
_PEER: Final = struct.Struct("3i")  # Linux struct ucred: pid, uid, gid
Ask = Callable[[int, Mapping[str, Any]], object]


class _Watcher:
    """One connection."""

    def __init__(self, number: int, connection: socket.socket, loop: Loop) -> None:
        self.number = number
        self.admitted = False
        self.connection = connection
        self.read = bytearray()
        self._unsent = bytearray()
        self._loop = loop

    def say_line(self, answer: Mapping[str, Any]) -> bool:
        """Send a line, now or later. False: that is too much for it."""
        waits = bool(self._unsent)
        self._unsent += json.dumps(answer, separators=(",", ":")).encode() + b"\n"
        if not waits:
            self.send_rest()
            if self._unsent:
                self._loop.add_writer(self.connection, self.send_rest)
        return len(self._unsent) <= UNREAD_MAX

    def send_rest(self) -> None:
        """Send what it takes."""
        try:
            while self._unsent:
                del self._unsent[: self.connection.send(self._unsent, socket.MSG_NOSIGNAL)]
        except BlockingIOError:
            return
        except OSError:  # its end is seen where it is read
            self._unsent.clear()
        self._loop.remove_writer(self.connection)

    def close(self) -> None:
        self._loop.remove_reader(self.connection)
        self._loop.remove_writer(self.connection)
        self.connection.close()


class LiveSocket:
    """One job's."""

    def __init__(self, loop: Loop, job_id: str, ask: Ask) -> None:
        """Listen.

        Args:
            loop: the launcher's.
            job_id: of the job.
            ask: is told who asks what.

        Raises:
            OSError: there can be no socket.
        """
        self._loop = loop
        self._ask = ask
        self._watchers: dict[int, _Watcher] = {}
        self._count = 0
        self._key = os.urandom(KEY_SIZE)
        self._name = JobName(job_id, os.getpid())
        self._folder = open_folder(make=True)
        try:
            self._listener = listen_in(self._folder, self._name, self._key)
        except OSError:
            os.close(self._folder)
            raise
        self._again: Cancellable | None = None
        self._listen()

    def _listen(self) -> None:
        self._again = None
        self._loop.add_reader(self._listener, self._accept)

    def inform(self, number: int, answer: Mapping[str, Any]) -> None:
        """Answer a watcher, if it is there."""
        watcher = self._watchers.get(number)
        if watcher is not None and not watcher.say_line(answer):
            self._dismiss(watcher)

    def close(self) -> None:
        """Nobody can watch any longer; nothing is left."""
        if self._again is not None:
            self._again.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        remove_files(self._folder, self._name)
        os.close(self._folder)
        for watcher in list(self._watchers.values()):
            self._dismiss(watcher)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # it has gone again
            return
        except OSError:  # too few descriptors: who comes waits
            self._loop.remove_reader(self._listener)
            self._again = self._loop.call_later(AGAIN, self._listen)
            return
        if len(self._watchers) >= WATCHERS or not _is_ours(connection):
            connection.close()
            return
        connection.setblocking(False)
        self._count += 1
        watcher = self._watchers[self._count] = _Watcher(self._count, connection, self._loop)
        self._loop.add_reader(connection, self._read, watcher)

    def _dismiss(self, watcher: _Watcher) -> None:
        if self._watchers.pop(watcher.number, None) is not None:
            watcher.close()

    def _read(self, watcher: _Watcher) -> None:
        try:
            data = watcher.connection.recv(READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        watcher.read += data
        *lines, rest = bytes(watcher.read).split(b"\n")
        watcher.read = bytearray(rest)
        if not data or len(rest) > LINE_MAX or not all(self._heard(watcher, x) for x in lines):
            self._dismiss(watcher)

    def _heard(self, watcher: _Watcher, line: bytes) -> bool:
        """Take a question in. False: it is none, or comes from somebody without the key."""
        try:
            question = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(question, dict):
            return False
        if watcher.admitted:
            self._ask(watcher.number, question)
            return True
        from hmac import compare_digest  # with hashlib, which nobody needs who is not watched

        given = question.get("key")
        if isinstance(given, str):
            watcher.admitted = compare_digest(given.encode(), self._key.hex().encode())
        return watcher.admitted


def _is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end is this user's, or root's."""
    with suppress(OSError):
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        return _PEER.unpack(found)[1] in {os.geteuid(), 0}
    return False
