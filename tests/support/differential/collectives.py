"""Random collective calls that move data: every call, mode and kind of communicator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from ompy import MPI

from tests.support.differential.calls import SIZES, Call, draw_units
from tests.support.differential.communicators import Edges, Members
from tests.support.differential.layouts import UNITS
from tests.support.differential.memory import (
    Memory,
    equal_blocks,
    one_block,
    typed_blocks,
    unequal_blocks,
)
from tests.support.differential.program import Program, some

ROOTED: Final = ("Bcast", "Gather", "Gatherv", "Scatter", "Scatterv")
TO_ALL: Final = ("Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw")
NEIGHBOURS: Final = tuple(f"Neighbor_{name.lower()}" for name in TO_ALL)
MODES: Final = ("blocking", "nonblocking", "nonblocking", "persistent")
Given = tuple[Memory, int, int, int]  # a block, who gives it, and which of that one's parts it is


class Plan:
    """A call as all ranks draw it.

    Attributes:
        members: of its communicator.
        name: of the blocking call.
        mode: blocking, nonblocking or persistent.
        unit: basic type of all data.
        units: elements of a block, where all are equal.
        constant: all bytes that a rank gives are the same: elements that are sent may overlap.
        root: rank in the program.
        root_side: the group that it is in.
        in_place: where the call can be.
        table: for each group, what each member gives to each of those that it gives to.
    """

    def __init__(self, program: Program, members: Members) -> None:
        chance = self.chance = program.chance
        self.members = members
        self.constant = some(chance, 0.15)
        self.unit = chance.choice(list(UNITS))
        self.mode = chance.choice(MODES)
        names = ["Barrier", *ROOTED, *TO_ALL]
        self.name: str = chance.choice([*names, *NEIGHBOURS * 2] if members.edges else names)
        self.units = draw_units(chance, self.unit)
        self.unequal = self.name[-1] in "vw"
        self.root_side = chance.randint(0, 1) if members.inter else 0
        self.root = chance.choice(members.groups[self.root_side])
        self.in_place = (
            not members.inter
            and self.name not in ("Barrier", "Bcast", *NEIGHBOURS)
            and some(chance, 0.25)
        )
        self.table = self._draw_table(members.edges)

    def _draw_row(self, length: int) -> list[int]:
        """Elements for each block."""
        if not self.unequal:
            return [self.units] * length
        most = self.chance.choice(SIZES if some(self.chance, 0.2) else SIZES[:20])
        base = most // UNITS[self.unit]
        row = [self.chance.choice((0, 1, base, base, base // 2 + 1)) for _ in range(length)]
        return row[:1] * length if "llgather" in self.name else row

    def _draw_table(self, edges: Edges | None) -> list[list[list[int]]]:
        """What everybody gives."""
        first, second = self.members.groups
        if self.name in NEIGHBOURS:
            assert edges
            # who gives the same to all has a count also where nobody gets it
            return [[self._draw_row(max(1, len(targets))) for targets in edges.targets]]
        if self.members.inter:
            sides = [(first, second), (second, first)]
            return [[self._draw_row(len(to)) for _ in givers] for givers, to in sides]
        found = [self._draw_row(len(first)) for _ in first]
        if self.in_place and self.name in ("Alltoallv", "Alltoallw"):  # as much as is got
            for row in range(len(first)):
                for column in range(row):
                    found[column][row] = found[row][column]
        return [found, found]

    def __str__(self) -> str:
        return (
            f"{self.name}, {self.mode}, {self.units} {self.unit} in {self.members.name}, "
            f"root {self.root}, in place {self.in_place}, {self.table}"
        )


class Collective(Call):
    """This rank's part of a plan."""

    def __init__(self, program: Program, number: int, plan: Plan) -> None:
        super().__init__(program, f"call {number}: {plan}")
        self.number, self.plan = number, plan
        self.members = plan.members
        self.persistent = plan.mode == "persistent"
        self.given: list[Given] = []
        self.awaited: list[Given] = []
        self.arguments: list[Any] = []
        prepare: dict[str, Callable[[], None]] = {
            "Barrier": lambda: None,
            "Bcast": self._broadcast,
            **dict.fromkeys(("Gather", "Gatherv", "Scatter", "Scatterv"), self._with_root),
            **dict.fromkeys(("Allgather", "Allgatherv"), self._to_all),
            **dict.fromkeys(("Alltoall", "Alltoallv", "Alltoallw"), self._to_each),
        }
        prepare.get(plan.name, self._along_edges)()

    def _one(self, units: int, into: bool) -> Memory:
        """Memory with one block."""
        plan = self.plan
        memory = one_block(self.program.own, plan.unit, units, into, plan.constant)
        self.memories.append(memory)
        return memory

    def _many(self, units: list[int]) -> Memory:
        """Memory with a block for each other one, as the call takes it."""
        own, unit, name = self.program.own, self.plan.unit, self.plan.name
        if name.endswith("w"):
            memory = typed_blocks(own, unit, units)
        elif name.endswith("v"):
            memory = unequal_blocks(own, unit, units)
        else:
            memory = equal_blocks(own, unit, self.plan.units, len(units))
        self.memories.append(memory)
        return memory

    def _root_argument(self) -> int:
        """As this rank names the root."""
        plan, members = self.plan, self.members
        if not members.inter or members.side != plan.root_side:
            return members.groups[plan.root_side].index(plan.root)
        return MPI.ROOT if self.program.me == plan.root else MPI.PROC_NULL

    def _broadcast(self) -> None:
        root, plan, me = self._root_argument(), self.plan, self.program.me
        if root == MPI.PROC_NULL:
            self.arguments = [None, root]
            return
        memory = self._one(plan.units, me != plan.root)
        (self.given if me == plan.root else self.awaited).append((memory, 0, plan.root, 0))
        self.arguments = [memory, root]

    def _with_root(self) -> None:
        """Gather and Scatter."""
        plan, me = self.plan, self.program.me
        root, gathers = self._root_argument(), plan.name.startswith("Gather")
        leaves = self.members.groups[1 - plan.root_side]
        at_root = plan.members.groups[plan.root_side].index(plan.root)
        counts = plan.table[plan.root_side][at_root]
        is_root = me == plan.root
        every: Any = None
        if is_root:
            every = self._many(counts)
            for block, leaf in enumerate(leaves):
                if gathers:
                    self.awaited.append((every, block, leaf, 0))
                if not gathers or (plan.in_place and leaf == me):
                    self.given.append((every, block, me, 0 if gathers else block))
        one: Any = MPI.IN_PLACE if plan.in_place and is_root else None
        if me in leaves and one is None:
            block = leaves.index(me)
            one = self._one(counts[block], not gathers)
            if gathers:
                self.given.append((one, 0, me, 0))
            else:
                self.awaited.append((one, 0, plan.root, block))
        self.arguments = [one, every, root] if gathers else [every, one, root]

    def _tables(self) -> tuple[list[list[int]], list[list[int]]]:
        """What this rank's group gives, and what is given to it."""
        side = self.members.side or 0
        return self.plan.table[side], self.plan.table[1 - side]

    def _to_all(self) -> None:
        """Allgather: everybody gives one block to all."""
        (mine, theirs), rank, me = self._tables(), self.members.rank, self.program.me
        every = self._many([row[0] for row in theirs])
        self.awaited = [(every, at, giver, 0) for at, giver in enumerate(self.members.remote)]
        if self.plan.in_place:
            self.given = [(every, rank, me, 0)]
            self.arguments = [MPI.IN_PLACE, every]
            return
        one = self._one(mine[rank][0], into=False)
        self.given = [(one, 0, me, 0)]
        self.arguments = [one, every]

    def _to_each(self) -> None:
        """Alltoall: everybody gives a block to each."""
        (mine, theirs), rank, me = self._tables(), self.members.rank, self.program.me
        others = self.members.remote
        kept = self._many([row[rank] for row in theirs])
        sent = kept if self.plan.in_place else self._many(mine[rank])
        self.awaited = [(kept, at, giver, rank) for at, giver in enumerate(others)]
        self.given = [(sent, at, me, at) for at, _ in enumerate(others)]
        self.arguments = [MPI.IN_PLACE if self.plan.in_place else sent, kept]

    def _along_edges(self) -> None:
        """The calls of neighbours."""
        plan, edges, me = self.plan, self.members.edges, self.program.me
        assert edges
        (table,) = plan.table
        sources, targets, places = edges.sources[me], edges.targets[me], edges.places[me]
        to_all = "allgather" in plan.name
        if to_all:
            places = [0] * len(sources)
        missing = 1 if plan.unequal else plan.units  # room for what no neighbour gives
        counts = [
            table[source][place] if source >= 0 else missing
            for source, place in zip(sources, places, strict=True)
        ]
        if to_all:
            sent = self._one(table[me][0], into=False)
            self.given = [(sent, 0, me, 0)]
        else:
            sent = self._many(table[me][: len(targets)])
            self.given = [(sent, at, me, at) for at, _ in enumerate(targets)]
        kept = self._many(counts)
        self.awaited = [
            (kept, at, source, place)
            for at, (source, place) in enumerate(zip(sources, places, strict=True))
            if source >= 0
        ]
        self.arguments = [sent, kept]

    def _data(self, giver: int, part: int, length: int) -> Any:
        """The bytes of a block."""
        if self.plan.constant:
            value = self.program.generator(self.number, self.turn, giver).integers(0, 256)
            return np.full(length, value, np.uint8)
        return self.program.given(self.number, self.turn, giver, part, length)

    def fill_memories(self) -> None:
        for memory, block, giver, part in self.given:
            memory.fill(block, self._data(giver, part, len(memory.places[block])))

    def expect_results(self) -> None:
        for memory, block, giver, part in self.awaited:
            memory.expect(block, self._data(giver, part, len(memory.places[block])))

    def begin(self) -> Any:
        plan = self.plan
        names = {"blocking": plan.name, "nonblocking": f"I{plan.name.lower()}"}
        function = getattr(self.members.comm, names.get(plan.mode, f"{plan.name}_init"))
        given = [one.argument() if isinstance(one, Memory) else one for one in self.arguments]
        return function(*given)
