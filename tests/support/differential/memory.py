"""Memory of a call: blocks of elements of random datatypes, the bytes between them, and the buffer
argument that tells of them."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from random import Random
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
from tests.support.differential.program import GUARD, Judge, some

TRIES: Final = 20  # for blocks that do not overlap; after that basic types
TYPED: Final = {"INT": "i4", "SHORT": "i2", "DOUBLE": "f8", "LONG": "i8", "FLOAT": "f4"}
Block = tuple[int, int, Layout]  # where its origin is (bytes), elements, layout


class Memory:
    """Bytes of a rank with blocks of elements among them.

    Attributes:
        whole: all.
        start: of what the blocks' origins are counted from.
        places: of the bytes of each block, as they are sent.
        apart: no byte is in two elements.
        want: what `whole` has to be.
        argument: makes the buffer argument, in one of its forms.
        layout: of the elements, where all have the same.
    """

    argument: Callable[[], Any]
    layout: Layout

    def __init__(self, own: Random, blocks: list[Block], plain: bool = False) -> None:
        self.places = [origin + layout.places_of(count) for origin, count, layout in blocks]
        every = np.concatenate([np.zeros(0, np.int64), *self.places])
        self.first = int(every.min()) if len(every) else 0
        self.end = int(every.max()) + 1 if len(every) else 0
        self.apart = not len(every) or int(np.bincount(every - self.first).max()) <= 1
        self.start = own.choice((0, 0, 0, 1, 4, 8))
        after = own.choice((0, 0, 3))
        if not plain:
            self.start, after = max(0, own.randint(0, 9) - self.first), own.randint(0, 9)
        self.places = [self.start + places for places in self.places]
        self.whole = np.full(self.start + self.end + after, GUARD, np.uint8)
        self.want = self.whole

    def clear(self) -> None:
        """Nothing but what has to stay."""
        self.whole.flags.writeable = True
        self.whole[:] = GUARD

    def fill(self, block: int, data: Any) -> None:
        """What is given."""
        self.whole[self.places[block]] = data

    def lend(self) -> None:
        """From now on all has to stay as it is, except for what is expected."""
        self.want = self.whole.copy()

    def expect(self, block: int, data: Any) -> None:
        """The first bytes of a block, or all of them."""
        self.want[self.places[block][: len(data)]] = data

    def check(self, judge: Judge, what: str) -> None:
        """Judge all bytes."""
        judge.compare(self.whole, self.want, what)

    def shifted(self, layout: Layout) -> Any:
        """The datatype that begins where the blocks do, for a buffer from the first byte on."""
        return layout.datatype.Create_hindexed([1], [self.start]).Commit()


def choose_layout(own: Random, name: str, units: int, overlap: bool = False) -> tuple[int, Layout]:
    """Elements and their layout."""
    if not units:
        return 0, draw_layout(own, name, own.choice((1, 2, 6)), 2)
    if some(own, 0.4):
        return units, basic_layout(name)
    sizes = divisors(units, 64 if units < 5000 else 6000)
    if units > 5000:
        sizes = sizes[-3:]
    size = own.choice(sizes)
    return units // size, draw_layout(own, name, size, own.randint(0, 3), overlap)


def plain_argument(own: Random, memory: Memory, count: int, name: str) -> Any:
    """One of the forms in which elements of a basic type can be given."""
    datatype, size = getattr(MPI, name), UNITS[name]
    rest = memory.whole[memory.start :]
    part = rest[: count * size]
    forms = [[rest, count, datatype], [part, datatype]]
    if name == "BYTE":
        forms += [part, memoryview(part)]
    if name in TYPED:
        array = part.view(TYPED[name])
        forms += [array, [array, datatype], [array, count], array.reshape(-1, 1)]
    if not memory.start % size:
        forms.append([memory.whole, count, memory.start // size, datatype])
    return own.choice(forms)


def one_block(
    own: Random, name: str, units: int, into: bool, constant: bool = False, more: int = 0
) -> Memory:
    """One block.

    Args:
        own: draws it.
        name: of the basic type.
        units: its elements.
        into: it is received into.
        constant: all its bytes are the same, so they may overlap in what is sent.
        more: elements that it has room for and does not get.
    """
    overlap = constant and not into
    for attempt in range(TRIES + 1):
        count, layout = choose_layout(own, name, units + more, overlap)
        if attempt == TRIES:
            count, layout = units + more, basic_layout(name)
        memory = Memory(own, [(0, count, layout)], plain=layout.basic)
        if memory.apart or overlap:
            break
    memory.layout = layout
    if layout.basic:
        memory.argument = lambda: plain_argument(own, memory, count, name)
    elif memory.first < 0 or some(own, 0.2):
        shifted = memory.shifted(layout)
        memory.argument = lambda: [memory.whole, count, shifted]
    else:
        memory.argument = lambda: [memory.whole[memory.start :], count, layout.datatype]
    return memory


def equal_blocks(own: Random, name: str, units: int, blocks: int) -> Memory:
    """Blocks of the same size, one after the other."""
    for attempt in range(TRIES + 1):
        count, layout = choose_layout(own, name, units)
        if attempt == TRIES:
            count, layout = units, basic_layout(name)
        each = [(block * count * layout.extent, count, layout) for block in range(blocks)]
        memory = Memory(own, each)
        if memory.apart:
            break
    start, end = memory.start, memory.start + max(memory.end, 0)
    if not layout.basic:
        shifted = memory.shifted(layout)
        memory.argument = lambda: [memory.whole, count, shifted]
    elif some(own, 0.7):
        memory.argument = lambda: [memory.whole[start:end], layout.datatype]
    else:
        memory.argument = lambda: [memory.whole[start:], count, layout.datatype]
    return memory


def draw_displacements(own: Random, counts: list[int]) -> list[int]:
    """In any order, with gaps between some."""
    order = list(range(len(counts)))
    if some(own, 0.5):
        own.shuffle(order)
    found, at = [0] * len(counts), 0
    for block in order:
        at += own.choice((0, 0, 1, 3))
        found[block] = at
        at += counts[block]
    return found


def unequal_blocks(own: Random, name: str, units: list[int]) -> Memory:
    """Blocks of any size and displacement, with one datatype."""
    for attempt in range(TRIES + 1):
        layout = basic_layout(name)
        if attempt < TRIES and some(own, 0.6):
            size = own.choice(divisors(gcd(*units)) or [1])
            layout = draw_layout(own, name, size, own.randint(0, 2))
        counts = [one // layout.units for one in units]
        displacements = draw_displacements(own, counts)
        each = [
            (displacement * layout.extent, count, layout)
            for displacement, count in zip(displacements, counts, strict=True)
        ]
        memory = Memory(own, each)
        if memory.apart:
            break
    shifted = memory.shifted(layout)
    in_order = displacements == [sum(counts[:block]) for block in range(len(counts))]
    if in_order and some(own, 0.4):
        memory.argument = lambda: [memory.whole, counts, shifted]
    elif some(own, 0.3):
        arrays = np.array(counts, "i"), np.array(displacements, "i")
        memory.argument = lambda: [memory.whole, *arrays, shifted]
    else:
        memory.argument = lambda: [memory.whole, (counts, displacements), shifted]
    return memory


def typed_blocks(own: Random, name: str, units: list[int]) -> Memory:
    """Blocks with a datatype each."""
    for attempt in range(TRIES + 1):
        each: list[Block] = []
        at = 0
        for one in units:
            count, layout = choose_layout(own, name, one)
            if attempt == TRIES:
                count, layout = one, basic_layout(name)
            places = np.append(layout.places_of(count), 0)
            each.append((at - int(places.min()), count, layout))
            at += int(places.max()) + 1 - int(places.min()) + own.choice((0, 1, 5))
        memory = Memory(own, each)
        if memory.apart:
            break
    displacements = [origin + memory.start for origin, _, _ in each]
    counts = [count for _, count, _ in each]
    types = [layout.datatype for _, _, layout in each]
    memory.argument = lambda: [memory.whole, counts, displacements, types]
    return memory
