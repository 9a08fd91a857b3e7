"""What whoever waits for a build can see of it.

pip hides what a build writes. Where there is a terminal, this goes to it past pip.
"""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Final, TextIO

TERMINAL: Final = "/dev/tty"


class Progress:
    """A line before, a line that counts, nothing of it afterwards; nothing at all elsewhere."""

    def __init__(self, text: str, count: int) -> None:
        """Say that it begins.

        Args:
            text: what is done, in a line.
            count: in so many steps.
        """
        self._count = count
        self._done = 0
        self._terminal: TextIO | None = None
        with contextlib.suppress(OSError):
            self._terminal = open(TERMINAL, "w")  # noqa: SIM115 - closed by __exit__
        self._write(f"\r\x1b[K{text}\n")

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._write("\r\x1b[K")
        if self._terminal is not None:
            self._terminal.close()

    def show_step(self, name: str) -> None:
        """One step is done."""
        self._done += 1
        self._write(f"\r\x1b[K{self._done} of {self._count}: {name}")

    def _write(self, text: str) -> None:
        if self._terminal is not None:
            with contextlib.suppress(OSError):
                self._terminal.write(text)
                self._terminal.flush()
