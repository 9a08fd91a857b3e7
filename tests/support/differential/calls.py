"""What mixtures are made of: a call that is begun, completed in some way, and judged."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.support.differential.layouts import UNITS
from tests.support.differential.memory import Memory
from tests.support.differential.program import Program, some

# bytes: around the limits of protocols and pieces, and odd ones between
SIZES: Final = (
    *(0, 1, 2, 3, 7, 12, 63, 64, 65, 120, 255, 256, 500, 1000, 1023, 1024, 4095, 4096, 4097),
    *(8192, 16384, 16385, 32768, 65535, 65536, 65537, 131072),
)
LARGE: Final = (262144, 524288, (1 << 20) - 1, 1 << 20, (1 << 20) + 1)
OVERWRITTEN: Final = 0x5A  # what a user may write into memory when a call is complete


def draw_units(chance: Random, name: str, most: int = 1 << 18) -> int:
    """Elements of a basic type.

    Args:
        chance: draws them.
        name: of the type.
        most: bytes.
    """
    return min(chance.choice(LARGE if some(chance, 0.03) else SIZES), most) // UNITS[name]


class Call:
    """One call, in all its turns.

    Attributes:
        what: it is, in reports.
        persistent: its request is started once in each turn.
        repeated: it is called once in each turn.
        memories: that it reads or writes.
    """

    persistent = False
    repeated = False

    def __init__(self, program: Program, what: str) -> None:
        self.program = program
        self.what = what
        self.turn = 0
        self.memories: list[Memory] = []

    def prepare(self, turn: int) -> None:
        """Fill the memory, and note what has to come of it."""
        self.turn = turn
        for memory in self.memories:
            memory.clear()
        self.fill_memories()
        for memory in self.memories:
            memory.lend()
        self.expect_results()

    def fill_memories(self) -> None:
        """With what this rank gives."""

    def expect_results(self) -> None:
        """What this rank has to get."""

    def begin(self) -> Any:
        """Call it.

        Returns:
            Its request, None if it is complete, or a function to try until it returns a request.
        """
        raise NotImplementedError

    def check_status(self, status: Any) -> None:
        """Judge what is said of a message."""

    def check(self) -> None:
        """Judge the memory of a call that is complete, and overwrite it, as a user may."""
        for memory in self.memories:
            memory.check(self.program.judge, f"{self.what}, turn {self.turn}")
            if memory.whole.flags.writeable:
                memory.whole[:] = OVERWRITTEN
