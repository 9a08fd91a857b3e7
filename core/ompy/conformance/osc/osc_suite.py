"""What every suite for osc components has: kinds of windows, and whom they are asked for."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import pytest

from ompy.conformance.component_kit import ComponentSuite
from ompy.conformance.mpi_worlds import MpiWorlds, Rank
from ompy.conformance.registries import Settings
from ompy.frameworks.osc import OscComponent
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.windows.windows import Win

ELEMENT: Final = 8  # bytes of a `q`; POSIX: int64_t
COUNT: Final = 64  # elements of a window, if a test says nothing else; arbitrary


def created(comm: Intracomm, count: int = COUNT) -> Win:
    """A window over memory of the program, which has a guard behind it."""
    memory = array("q", [0]) * (count + 1)
    memory[count] = GUARD
    return Win.Create(memoryview(memory)[:count], ELEMENT, comm=comm)


def allocated(comm: Intracomm, count: int = COUNT) -> Win:
    """A window over memory that the component makes."""
    return Win.Allocate(count * ELEMENT, ELEMENT, comm=comm)


GUARD: Final = 0x5A5A5A5A5A5A5A5A  # arbitrary
KINDS: Final[dict[str, Callable[..., Win]]] = {"created": created, "allocated": allocated}
# where the ranks are, and so which ways there are between them
PLACES: Final = {"one host": (0, 0, 0), "several hosts": (0, 1, 2)}


class OscSuite(ComponentSuite):
    """Base of the suites for osc components."""

    framework: ClassVar[str] = "osc"

    @pytest.fixture
    def worlds(self, component: OscComponent, settings: Settings) -> OscWorlds:
        """What makes the worlds of a test."""
        return OscWorlds(component, settings)


class OscWorlds(MpiWorlds):
    """Worlds whose windows the component serves where it can."""

    def play_windows(
        self,
        kind: str,
        program: Callable[[Rank, Win], Any],
        *,
        place: str = "one host",
        count: int = COUNT,
        seed: int = 0,
    ) -> list[Any]:
        """Run a program of three ranks with a window, and see that its guard is whole.

        Skips the test where the component leaves such windows to others.
        """

        def body(rank: Rank) -> Any:
            win = KINDS[kind](rank.comm, count)
            result = program(rank, win)
            rank.comm.Barrier()
            memory = win.tomemory()
            if kind == "created":
                whole = memoryview(memory.obj).cast("B").cast("q")
                assert whole[count] == GUARD, "memory behind the window was changed"
            win.Free()
            return result

        played = self.play(body, 3, seed=seed, hosts=PLACES[place])
        if not played.used:
            pytest.skip(f"capability off: {kind} windows, {place}")
        return played.results


def numbers(*values: int) -> array[int]:
    """Elements."""
    return array("q", values)


def element(win: Win, index: int) -> int:
    """What this rank's part of a window has."""
    return int(memoryview(win.tomemory()).cast("B").cast("q")[index])


def elements(win: Win) -> Sequence[int]:
    """All of it."""
    return memoryview(win.tomemory()).cast("B").cast("q").tolist()
