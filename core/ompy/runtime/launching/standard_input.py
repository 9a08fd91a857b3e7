"""The launcher's standard input, for the one rank that gets it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from ompy.engine.reactor import Loop
from ompy.runtime.agents.forwarding import INPUT_WINDOW
from ompy.runtime.connections.control import READ_SIZE

_STDIN: Final = 0


class StandardInput:
    """Reads only as fast as the rank does, and never from the terminal in the background."""

    def __init__(self, loop: Loop, on_data: Callable[[bytes], None]) -> None:
        """Get ready; `resume` begins.

        Args:
            loop: watches.
            on_data: told what was read, and nothing (`b""`) at the end.
        """
        self._loop = loop
        self._on_data = on_data
        self._window = INPUT_WINDOW
        self._open = True
        self._reading = False
        self._watchable = True

    def resume(self) -> None:
        """Read if there is room and the terminal is ours; called again after a stop."""
        if not self._open or self._reading or self._window <= 0 or _in_background():
            return
        self._reading = True
        try:
            self._loop.add_reader(_STDIN, self._read)
        except PermissionError:  # a file, or the null device: always readable
            self._watchable = False
            self._loop.call_soon(self._read)

    def taken(self, count: int) -> None:
        """The rank has read `count` bytes."""
        self._window += count
        self.resume()

    def _read(self) -> None:
        if not self._reading:
            return
        if _in_background():  # reading would stop us; SIGCONT comes when we are in front again
            self._pause()
            return
        try:
            data = os.read(_STDIN, READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # the terminal is gone
            data = b""
        self._on_data(data)
        self._window -= len(data)
        if not data:
            self.close()
        elif self._window <= 0:
            self._pause()
        elif not self._watchable:
            self._loop.call_soon(self._read)

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            if self._watchable:
                self._loop.remove_reader(_STDIN)

    def close(self) -> None:
        """Read no more."""
        self._open = False
        self._pause()


def _in_background() -> bool:
    """Whether standard input is a terminal that another job of the shell has in front."""
    try:
        return os.isatty(_STDIN) and os.tcgetpgrp(_STDIN) != os.getpgrp()
    except OSError:
        return False
