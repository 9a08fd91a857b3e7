"""What looks at one rank of a simulated world: a debugger, which an upper floor has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Debugger(Protocol):
    """Looks at one rank of a world.

    Attributes:
        rank: which.
    """

    rank: int

    def run_program(self, program: Callable[[], tuple[int, str]]) -> tuple[int, str]:
        """Run the rank's program, in the rank's process."""

    def failed(self) -> None:
        """The program has ended with an exception."""

    def stop_in_call(self) -> None:
        """The world has ended while the program is in a call."""

    def world_ends(self, text: str) -> None:
        """Hear, in the scheduler's process, why the world ends."""
