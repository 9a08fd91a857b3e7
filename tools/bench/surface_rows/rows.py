"""What a row is, and buffers for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

# Open MPI 5.0 crashes in a later collective when a persistent one is dropped without being freed
KEPT: Final[list[Any]] = []
Step = Callable[[int], None]  # does something so many times, on every rank
HUGE_PAGE: Final = 2 << 20  # of x86
HUGE: Final = 2 * HUGE_PAGE  # from here on NumPy asks for huge pages: memory of one kind for all


class Row(NamedTuple):
    """One way of calling one method.

    Attributes:
        method: as `Comm.Gather`; what the test of completeness counts.
        name: of the row: the method and how it is called.
        make: with a size in bytes, what does it; None is for what a size means nothing to.
        sized: whether sizes differ.
        per: calls that one step is, for the figure.
    """

    method: str
    name: str
    make: Callable[[int], Step]
    sized: bool = True
    per: int = 1


def room(count: int, kind: type = np.uint8) -> Any:
    """An array of `count` elements, zero.

    A large one begins with a huge page. Where NumPy puts it, its beginning may lie in small pages,
    which the kernel takes twice as long to copy; and where that is differs from side to side.
    """
    size = count * np.dtype(kind).itemsize
    large = size > HUGE // 64
    whole = np.empty(max(size + HUGE_PAGE, HUGE) if large else max(size, 8), np.uint8)
    whole[:] = 0
    start = -whole.ctypes.data % HUGE_PAGE if large else 0
    return whole[start : start + size].view(kind)


def doubles(size: int) -> int:
    """How many doubles are so many bytes; one at least, unless it is nothing."""
    return max(size // 8, 1) if size else 0


def repeat(call: Callable[[], object]) -> Step:
    """A call, again and again."""

    def step(count: int) -> None:
        for _ in range(count):
            call()

    return step


def begun(call: Callable[[], Any]) -> Step:
    """A call that returns a request, waited for."""

    def step(count: int) -> None:
        for _ in range(count):
            call().Wait()

    return step


def started(make: Callable[[], Any]) -> Step:
    """A request to start again and again."""
    request = make()
    KEPT.append(request)

    def step(count: int) -> None:
        for _ in range(count):
            request.Start()
            request.Wait()

    return step
