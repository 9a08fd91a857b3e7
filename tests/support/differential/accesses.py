"""Random accesses to windows: what all ranks know of them, and the origin's part.

A window is divided into chunks. In an epoch a chunk is for one put, one get, accumulates of many
origins that commute, or a row of atomic accesses of one origin, which MPI keeps in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from ompy import MPI

from tests.support.differential.layouts import (
    UNITS,
    Layout,
    basic_layout,
    divisors,
    draw_layout,
)
from tests.support.differential.memory import Memory, one_block
from tests.support.differential.program import Program, some
from tests.support.differential.reductions import FIXED, MODEL

TRIES: Final = 8  # for a layout that fits into a chunk
INTEGERS: Final = FIXED | {"INT": "i4", "LONG": "i8"}
ATOMIC: Final = INTEGERS | {"FLOAT": "f4", "DOUBLE": "f8"}
COMMUTING: Final = ("SUM", "PROD", "MAX", "MIN", "BAND", "BOR", "BXOR")
OF_FLOATS: Final = ("SUM", "PROD", "MAX", "MIN", "REPLACE", "NO_OP")
OF_INTEGERS: Final = (*OF_FLOATS, "BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR")
ROW: Final = 5  # atomic accesses in a row, at most


@dataclass(frozen=True)
class Chunk:
    """Bytes of a window that one kind of access has in an epoch.

    Attributes:
        target: rank whose window it is.
        number: of the chunk in the window, beside the epoch: no other one of the target has it.
        low: its first byte.
        size: bytes.
        step: the window's displacement unit.
    """

    target: int
    number: int
    low: int
    size: int
    step: int


@dataclass(frozen=True)
class Access:
    """One access, as all ranks draw it.

    Attributes:
        kind: the blocking call's name.
        chunk: it is to.
        place: of it in a row.
        origin: rank.
        unit: basic type.
        units: elements of it.
        count: elements of the target's datatype.
        layout: of that one.
        places: bytes of the window, in the order in which they are sent.
        displacement: bytes.
        operation: of atomic ones.
    """

    kind: str
    chunk: Chunk
    place: int
    origin: int
    unit: str
    units: int
    count: int
    layout: Layout
    places: Any
    displacement: int
    operation: str = "REPLACE"

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.operation} of {self.units} {self.unit} from {self.origin} to "
            f"{self.chunk.target} at {self.displacement}, {self.count} {self.layout.name}"
        )

    @property
    def type(self) -> Any:
        """NumPy's, of atomic ones."""
        return np.dtype(ATOMIC[self.unit])

    def data(self, program: Program) -> Any:
        """The bytes that the origin gives."""
        names = (self.chunk.number, self.place, self.chunk.target, self.origin)
        length = self.units * UNITS[self.unit]
        if self.kind == "Put" or self.type.kind != "f":
            return program.given(*names, length)
        numbers = program.generator(*names)  # such that results are exact
        low, high = (1, 3) if self.operation == "PROD" else (-50, 50)
        return numbers.integers(low, high, self.units).astype(self.type).view(np.uint8)

    def compared(self, old: Any) -> Any:
        """What Compare_and_swap compares with: every second time it is there."""
        found = old.copy()
        found[0] ^= (self.chunk.number + self.place) % 2
        return found

    def apply(self, program: Program, window: Any) -> Any:
        """Change the model of the target's window. Returns the bytes that were there."""
        old = window[self.places].copy()
        if self.kind == "Get" or self.operation == "NO_OP":
            return old
        new = self.data(program)
        if self.kind == "Compare_and_swap":
            if not np.array_equal(old, self.compared(old)):
                return old
        elif self.operation != "REPLACE":
            combine = MODEL[self.operation]
            with np.errstate(all="ignore"):
                both = combine(old.view(self.type), new.view(self.type))
            new = both.astype(self.type).view(np.uint8)
        window[self.places] = new
        return old


def fit_layout(
    program: Program, chunk: Chunk, unit: str, units: int, move: bool
) -> tuple[int, Layout, Any, int]:
    """Elements, layout, places and displacement of some elements in a chunk.

    Args:
        program: draws it.
        chunk: to be in.
        unit: basic type.
        units: elements of it.
        move: begin anywhere in the chunk.
    """
    chance = program.chance
    for _ in range(TRIES):
        layout = basic_layout(unit)
        if some(chance, 0.55):
            layout = draw_layout(chance, unit, chance.choice(divisors(units)), chance.randint(0, 2))
        count = units // layout.units
        places = layout.places_of(count)
        first, span = int(places.min()), int(places.max()) + 1 - int(places.min())
        if span > chunk.size or int(np.bincount(places - first).max()) > 1:
            continue
        begin = chance.randint(0, chunk.size - span) if move else 0
        displacement = chunk.low + begin - first
        if displacement >= 0 and not displacement % chunk.step:
            return count, layout, displacement + places, displacement
    layout = basic_layout(unit)
    return units, layout, chunk.low + layout.places_of(units), chunk.low


def draw_units(program: Program, chunk: Chunk, unit: str, sizes: Sequence[int]) -> int:
    """Elements that the chunk has room for."""
    most = chunk.size // UNITS[unit]
    return min(program.chance.choice((*sizes, most, max(1, most // 2))), most)


def draw_accesses(program: Program, chunk: Chunk) -> list[Access]:
    """What is done to a chunk in an epoch."""
    chance = program.chance
    what = chance.choice(("nothing", *("Put", "Get", "commuting", "row") * 2))
    if what == "nothing":
        return []
    if what == "row":
        return draw_row(program, chunk)
    unit = chance.choice(list(INTEGERS if what == "commuting" else UNITS))
    units = draw_units(program, chunk, unit, (1, 2, 6, 12))
    where = fit_layout(program, chunk, unit, units, move=what != "commuting")
    if what != "commuting":
        return [Access(what, chunk, 0, chance.randrange(program.size), unit, units, *where)]
    operation = chance.choice(COMMUTING)
    origins = chance.sample(range(program.size), chance.randint(1, program.size))
    return [
        Access("Accumulate", chunk, 0, origin, unit, units, *where, operation) for origin in origins
    ]


def draw_row(program: Program, chunk: Chunk) -> list[Access]:
    """Atomic accesses of one origin."""
    chance = program.chance
    unit, origin = chance.choice(list(ATOMIC)), chance.randrange(program.size)
    units = draw_units(program, chunk, unit, (1, 1, 4))
    floats = ATOMIC[unit].startswith("f")
    kinds = ["Accumulate", "Get_accumulate", "Get_accumulate", "Fetch_and_op"]
    if not floats:
        kinds.append("Compare_and_swap")
    layout, found = basic_layout(unit), []
    for place in range(chance.randint(1, ROW)):
        kind = chance.choice(kinds)
        operation = chance.choice(OF_FLOATS if floats else OF_INTEGERS)
        if floats and not place:  # what was there may be no number
            kind, operation = "Accumulate", "REPLACE"
        if kind == "Compare_and_swap":
            operation = "REPLACE"
        count = 1 if kind in ("Fetch_and_op", "Compare_and_swap") else units
        places = chunk.low + layout.places_of(count)
        where = (count, layout, places, chunk.low)
        found.append(Access(kind, chunk, place, origin, unit, count, *where, operation))
    return found


class Origin:
    """An access by this rank.

    Attributes:
        access: it is.
        memories: what is sent, and what is received into.
    """

    def __init__(self, program: Program, access: Access, old: Any, address: int) -> None:
        """Fill the memory.

        Args:
            program: of it.
            access: it is.
            old: bytes that are in the window before.
            address: displacement of the target's window.
        """
        self.program, self.access, self.old = program, access, old
        own, unit, units = program.own, access.unit, access.units
        self.target = access.chunk.target
        self.displacement = (address + access.displacement) // access.chunk.step
        single = access.kind in ("Fetch_and_op", "Compare_and_swap")
        self.memories: list[Memory] = []
        for into in (False, True):
            if access.kind in (("Put", "Accumulate") if into else ("Get",)):
                continue
            if single:
                memory = Memory(own, [(0, 1, basic_layout(unit))], plain=True)
            else:
                memory = one_block(own, unit, units, into)
            if not into:
                memory.fill(0, access.data(program))
            memory.lend()
            if into:
                memory.expect(0, old)
            self.memories.append(memory)
        self.request: Any = None
        self.judged = False

    def _begin(self, window: Any, asks: bool) -> Any:
        """Call it. Returns the request, if it asks for one."""
        access, kind = self.access, self.access.kind
        datatype = getattr(MPI, access.unit)
        if kind in ("Fetch_and_op", "Compare_and_swap"):
            ends = [[one.whole[one.start :], 1, datatype] for one in self.memories]
            if kind == "Compare_and_swap":
                ends.insert(1, [access.compared(self.old), 1, datatype])
            more = [getattr(MPI, access.operation)] if kind == "Fetch_and_op" else []
            return getattr(window, kind)(*ends, self.target, self.displacement, *more)
        ends = [one.argument() for one in self.memories]
        where = (self.displacement, access.count, access.layout.datatype)
        more = [getattr(MPI, access.operation)] if "ccumulate" in kind else []
        name = f"R{kind.lower()}" if asks else kind
        return getattr(window, name)(*ends, self.target, where, *more)

    def perform(self, window: Any, passive: bool) -> None:
        """Call it, and now and then complete it at once.

        Args:
            window: of the target.
            passive: the target does not take part in the epoch.
        """
        own = self.program.own
        request = self._begin(window, passive and some(own, 0.3))
        if isinstance(request, MPI.Request):
            self.request = request
            if some(own, 0.5):
                self.complete()
        elif passive and some(own, 0.3):
            own.choice((window.Flush, window.Flush_local))(self.target)
            self.complete()

    def complete(self) -> None:
        """Wait for its request, judge the memory, and overwrite it, as a user may."""
        if self.judged:
            return
        self.judged = True
        if self.request is not None:
            self.request.Wait()
        for memory in self.memories:
            memory.check(self.program.judge, str(self.access))
            memory.clear()
