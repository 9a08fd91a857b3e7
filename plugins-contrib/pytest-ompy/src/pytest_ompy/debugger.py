"""The debugger of a rank, at the controller's terminal: `--pdb`, `--trace` and `breakpoint()`.

A rank has no terminal. What its debugger prints and reads goes over its channel; pytest's own
debugging support does the rest, since `--pdbcls` names the class here.
"""

from __future__ import annotations

import io
import pdb
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from pytest_ompy.channel import Channel

CLASS: Final = ("pytest_ompy.debugger", "RankPdb")
_THERE: Final[list[tuple[Channel, int]]] = []  # to the controller, and the number of this rank


class _Terminal(io.TextIOBase):
    """The controller's terminal, as far as a debugger needs one."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._written = ""

    def write(self, text: str, /) -> int:
        self._written += text
        return len(text)

    def readline(self, _size: int | None = -1, /) -> str:  # type: ignore[override]
        self._channel.send("debugger", text=self._written)
        self._written = ""
        answer = self._channel.receive()
        assert answer["what"] == "input", answer
        line: str = answer["line"]
        return line


class RankPdb(pdb.Pdb):
    """Talks to the controller's terminal."""

    def __init__(self, **options: Any) -> None:
        channel, rank = _THERE[-1]
        terminal: Any = _Terminal(channel)
        super().__init__(stdin=terminal, stdout=terminal, nosigint=True, **options)
        self.use_rawinput = False
        self.prompt = f"(Pdb, rank {rank}) "


def use(channel: Channel, rank: int) -> None:
    """Have the debuggers of this process, which is a rank, talk over `channel`."""
    _THERE.append((channel, rank))


class Console:
    """The controller's terminal, for the debuggers of ranks."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def open(self, rank: int, before: str) -> None:
        """A rank gets the terminal.

        Args:
            rank: its number.
            before: what has brought it there; may be empty.
        """
        terminal = self._config.get_terminal_writer()
        with self._uncaptured():
            terminal.line()
            if before:
                terminal.line(before)
            terminal.sep(">", f"debugger of rank {rank}")

    def ask(self, text: str) -> str:
        """Show what a debugger says and read the user's answer; empty at the end of the input."""
        with self._uncaptured():
            try:
                return input(text) + "\n"
            except EOFError:
                return ""

    @contextmanager
    def _uncaptured(self) -> Iterator[None]:
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        if capture is None:
            yield
            return
        capture.suspend(in_=True)
        try:
            yield
        finally:
            capture.resume()
