"""Memory for elements of eight bytes, with a guard around it and an opinion of its contents."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import DATATYPES

GUARD: Final = 64  # bytes before and behind; arbitrary
ELEMENT: Final = 8  # bytes of an INT64_T; C says so
SPREAD: Final = 24  # bytes from an element to the next where there are gaps; arbitrary
SALT: Final = 1 << 40  # arbitrary: sums of so large numbers have no byte that is 0 by chance


class Case(NamedTuple):
    """One call of an operation.

    Attributes:
        elements: of a block, or of the message.
        stride: bytes from an element to the next in memory.
        in_place: as MPI.IN_PLACE means it.
        uneven: blocks differ in their counts.
        root: of the operations that have one.
        salt: makes the data of this call differ from others'.
    """

    elements: int
    stride: int = ELEMENT
    in_place: bool = False
    uneven: bool = False
    root: int = 0
    salt: int = 0

    def counts(self, size: int) -> list[int]:
        """Elements of each block."""
        if not self.uneven:
            return [self.elements] * size
        return [self.elements * ((rank * 2 + self.salt) % 3) for rank in range(size)]

    def values(self, count: int, *who: int) -> list[int]:
        """What somebody has to say in this call."""
        chance = Random(f"{self.salt}/{self.root}/{who}")  # noqa: S311 - data
        first, step = chance.randrange(SALT), chance.randrange(1, SALT)
        return [first + step * index for index in range(count)]


class Room:
    """Memory of one rank for one call.

    Attributes:
        memory: of the elements, and around them.
    """

    def __init__(self, count: int, stride: int) -> None:
        size = GUARD + count * stride + GUARD
        self.memory = bytearray(Random(size).randbytes(size))  # noqa: S311 - a pattern
        self._expected = bytearray(self.memory)
        self._stride = stride

    def put_values(self, first: int, values: Sequence[int]) -> None:
        """Have these there, and expect them to stay."""
        self._store(self.memory, first, values)
        self._store(self._expected, first, values)

    def expect_values(self, first: int, values: Sequence[int]) -> None:
        """Expect the call to bring these."""
        self._store(self._expected, first, values)

    def differs(self) -> str:
        """What is there that should not be; empty if nothing is."""
        if self.memory == self._expected:
            return ""
        pairs = zip(self.memory, self._expected, strict=True)
        at = next(index for index, (is_, due) in enumerate(pairs) if is_ != due)
        inside = at - GUARD
        if not 0 <= inside < len(self.memory) - 2 * GUARD:
            return "memory outside of the buffer was changed"
        element, byte = divmod(inside, self._stride)
        if byte >= ELEMENT:
            return f"the gap behind element {element} was changed"
        start = GUARD + element * self._stride
        found, due_value = (
            array("q", bytes(one[start : start + ELEMENT]))[0]
            for one in (self.memory, self._expected)
        )
        return f"element {element} is {found}, and should be {due_value}"

    @property
    def view(self) -> memoryview:
        """From the first element on."""
        return memoryview(self.memory)[GUARD:]

    def _store(self, memory: bytearray, first: int, values: Sequence[int]) -> None:
        for index, value in enumerate(values):
            at = GUARD + (first + index) * self._stride
            memory[at : at + ELEMENT] = value.to_bytes(ELEMENT, "little", signed=True)


class Types:
    """The datatype of an element, for each stride; freed together."""

    def __init__(self) -> None:
        self._apart: Datatype = DATATYPES["INT64_T"].Create_resized(0, SPREAD).Commit()

    def of_stride(self, stride: int) -> Datatype:
        """For elements so many bytes apart."""
        return DATATYPES["INT64_T"] if stride == ELEMENT else self._apart

    def free_all(self) -> None:
        """Free it."""
        self._apart.Free()
