"""Random reductions: every call and mode, every kind of element and operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, Final

import numpy as np
from ompy import MPI

from tests.support.differential.communicators import Members, draw_communicators, free_all
from tests.support.differential.program import GUARD, Program, some

# elements: around the limits of protocols and pieces, and odd ones between
SIZES: Final = (
    *(0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 255, 257, 511, 512, 513),
    *(1000, 1024, 2047, 2048, 4095, 4096, 4097, 8191, 8192, 8193, 16384, 30000),
)
LARGE: Final = (65536, 131071, 262144, 300001)
FIXED: Final = {
    f"{sign}INT{8 * width}_T": f"{kind}{width}"
    for sign, kind in (("", "i"), ("U", "u"))
    for width in (1, 2, 4, 8)
}
INTEGERS: Final = FIXED | {
    "SIGNED_CHAR": "b",
    "UNSIGNED_CHAR": "B",
    "SHORT": "h",
    "UNSIGNED_SHORT": "H",
    "INT": "i",
    "UNSIGNED": "I",
    "LONG": "l",
    "UNSIGNED_LONG": "L",
    "LONG_LONG": "q",
    "UNSIGNED_LONG_LONG": "Q",
    "AINT": "p",
    "COUNT": "i8",
    "OFFSET": "i8",
}
FLOATS: Final = {"FLOAT": "f4", "DOUBLE": "f8", "LONG_DOUBLE": "g"}
COMPLEX: Final = {
    "C_FLOAT_COMPLEX": "F",
    "C_DOUBLE_COMPLEX": "D",
    "C_LONG_DOUBLE_COMPLEX": "G",
}
BOOLS: Final = {"C_BOOL": "?"}
PAIRS: Final = {
    "INT_INT": "i4",
    "FLOAT_INT": "f4",
    "DOUBLE_INT": "f8",
    "LONG_INT": "i8",
    "SHORT_INT": "i2",
    "LONG_DOUBLE_INT": "g",
}
MAPS: Final = {"maps": np.dtype([("factor", "u4"), ("term", "u4")])}
LOGICAL: Final = ("LAND", "LOR", "LXOR")
FAMILIES: Final[Sequence[tuple[Any, Sequence[str]]]] = (  # and how often: where more went wrong
    *((INTEGERS, ("SUM", "PROD", "MAX", "MIN", "BAND", "BOR", "BXOR", *LOGICAL)),) * 5,
    *((FLOATS, ("SUM", "PROD", "MAX", "MIN")), (COMPLEX, ("SUM", "PROD")), (BOOLS, LOGICAL)),
    *((PAIRS, ("MAXLOC", "MINLOC")),) * 2,
    *((MAPS, ("composed",)),) * 2,
    ({"UINT32_T": "u4"}, ("added",)),
)


def type_of(elements: str) -> np.dtype[Any]:
    """NumPy's type of elements."""
    if elements in PAIRS:
        return np.dtype([("value", PAIRS[elements]), ("index", "i4")], align=True)
    return np.dtype({**INTEGERS, **FLOATS, **COMPLEX, **BOOLS, **MAPS}[elements])


def composed(first: Any, second: Any) -> Any:
    """The maps x -> factor x + term, one after the other: the order matters."""
    both = np.empty_like(second)
    both["factor"] = first["factor"] * second["factor"]
    both["term"] = first["term"] * second["factor"] + second["term"]
    return both


def located(better: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The better value, and the lowest index of it."""

    def combined(first: Any, second: Any) -> Any:
        both = second.copy()
        taken = better(first["value"], second["value"])
        both[taken] = first[taken]
        equal = first["value"] == second["value"]
        both["index"][equal] = np.minimum(first["index"], second["index"])[equal]
        return both

    return combined


def logical(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """1 or 0, of the elements' type."""
    return lambda first, second: function(first, second).astype(first.dtype)


MODEL: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "SUM": np.add,
    "PROD": np.multiply,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
    "LAND": logical(np.logical_and),
    "LOR": logical(np.logical_or),
    "LXOR": logical(np.logical_xor),
    "MAXLOC": located(np.greater),
    "MINLOC": located(np.less),
    "composed": composed,
    "added": np.add,
}


def compose(given: Any, kept: Any, _datatype: Any) -> None:
    """The function of a user's operation that does not commute."""
    room = np.frombuffer(kept, MAPS["maps"])
    room[:] = composed(np.frombuffer(given, MAPS["maps"]), room)


def add(given: Any, kept: Any, _datatype: Any) -> None:
    """The function of a user's operation that commutes."""
    room = np.frombuffer(kept, np.uint32)
    room += np.frombuffer(given, np.uint32)


class Case:
    """One reduction, as all ranks draw it.

    Attributes:
        members: of its communicator.
        number: of the call in its program.
        elements: name of their type.
        operation: name of it.
        call: the blocking one's name.
        mode: blocking, nonblocking or persistent.
        count: elements of each rank.
        root: rank in the program.
        root_side: the group that it is in.
        in_place: where a call can be.
        counts: for each group, elements that each member gets of a scattered result.
        turns: of a persistent request.
    """

    def __init__(self, program: Program, members: Members, number: int) -> None:
        chance = program.chance
        self.members, self.number = members, number
        family, operations = chance.choice(FAMILIES)
        self.elements = chance.choice(list(family))
        self.operation = chance.choice(operations)
        scans = [] if members.inter else ["Scan", "Exscan"]
        every = ["Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block", *scans]
        self.call = chance.choice(every)
        self.mode = chance.choice(("blocking", "blocking", "nonblocking", "persistent"))
        self.count = chance.choice(LARGE if some(chance, 0.04) else SIZES)
        self.root_side = chance.randint(0, 1) if members.inter else 0
        self.root = chance.choice(members.groups[self.root_side])
        self.in_place = not members.inter and some(chance, 0.3)
        self.turns = chance.randint(1, 2) if self.mode == "persistent" else 1
        self.counts = self._scattered(chance)

    def _scattered(self, chance: Any) -> list[list[int]]:
        """What each member gets."""
        sizes = [len(group) for group in self.members.groups]
        if self.call == "Reduce_scatter_block":
            self.count = self.count // 4 * sizes[0] * (sizes[1] if self.members.inter else 1)
            return [[self.count // size] * size for size in sizes]
        found = []
        for size in sizes[: 2 if self.members.inter else 1]:
            cuts = [
                chance.choice((0, self.count, chance.randint(0, self.count)))
                for _ in range(size - 1)
            ]
            edges = sorted([0, *cuts, self.count])
            found.append([after - before for before, after in pairwise(edges)])
        return found * (1 if self.members.inter else 2)

    def __str__(self) -> str:
        return (
            f"call {self.number}: {self.call}, {self.mode}, {self.count} {self.elements} "
            f"{self.operation}, {self.members.name}, root {self.root}, "
            f"in place {self.in_place}, counts {self.counts}"
        )


class Reduction:
    """This rank's part of a case: its memory, the call, and what has to come of it."""

    def __init__(self, program: Program, case: Case) -> None:
        self.program, self.case = program, case
        members = case.members
        self.type = type_of(case.elements)
        self.datatype, self.operation = self._handles()
        self.is_root = program.me == case.root
        self.in_place = case.in_place and (case.call != "Reduce" or self.is_root)
        scattered = case.call.startswith("Reduce_scatter")
        self.counts = case.counts[members.side or 0]
        self.got = self.counts[members.rank] if scattered else case.count
        self.before = sum(self.counts[: members.rank]) if scattered else 0
        offset = program.own.choice((0, 0, 1, 3, 8))  # bytes: users' memory need not be aligned
        self.sent_whole, self.sent = self._memory(case.count, offset)
        room = case.count if self.in_place else self.got
        self.kept_whole, self.kept = self._memory(room, offset)

    def _handles(self) -> tuple[Any, Any]:
        """The datatype and the operation."""
        name = self.case.operation
        if name == "composed":
            if some(self.program.own, 0.5):
                datatype = MPI.UINT32_T.Create_contiguous(2)
            else:
                datatype = MPI.Datatype.Create_struct([1, 1], [0, 4], [MPI.UINT32_T] * 2)
            return datatype.Commit(), MPI.Op.Create(compose, commute=False)
        datatype = getattr(MPI, self.case.elements)
        if name == "added":
            return datatype, MPI.Op.Create(add, commute=True)
        return datatype, getattr(MPI, name)

    def _memory(self, count: int, offset: int) -> tuple[Any, Any]:
        """All bytes, and the elements among them."""
        length = count * self.type.itemsize
        whole = np.full(offset + length + 16, GUARD, np.uint8)
        return whole, whole[offset : offset + length].view(self.type)

    def values(self, turn: int, rank: int) -> Any:
        """What a rank gives. Results are exact in any order of the operations."""
        numbers = self.program.generator(self.case.number, turn, rank)
        count, kind = self.case.count, self.type.kind
        if self.case.elements in PAIRS:
            found = np.zeros(count, self.type)
            found["value"] = numbers.integers(-3, 4, count)
            found["index"] = numbers.integers(-5, 100, count)
            return found
        if kind == "f" and self.case.operation == "PROD":
            return (2.0 ** numbers.integers(-3, 4, count)).astype(self.type)
        if kind == "f":
            return numbers.integers(-1000, 1000, count).astype(self.type)
        if kind == "c":
            whole = numbers.integers(-4, 5, count) + 1j * numbers.integers(-4, 5, count)
            return whole.astype(self.type)
        if kind == "b" or self.case.operation in LOGICAL:
            true = 1 if kind == "b" else numbers.integers(1, 100)
            return (numbers.integers(0, 2, count) * true).astype(self.type)
        return np.frombuffer(numbers.bytes(count * self.type.itemsize), self.type)

    def fill_memory(self, turn: int) -> None:
        """What this rank gives in a turn, between bytes that have to stay."""
        self.sent_whole[:] = self.kept_whole[:] = GUARD
        into = self.kept if self.in_place else self.sent
        into[: self.case.count] = self.values(turn, self.program.me)
        self.lent = self.sent_whole.copy()

    def begin(self) -> Any:
        """Call it. Returns the request, if it has one."""
        case = self.case
        parts = len(self.counts) if case.call == "Reduce_scatter_block" else 1
        sent: Any = [self.sent, case.count // parts, self.datatype]
        kept: Any = [self.kept, self.got, self.datatype]
        if self.in_place:
            sent = MPI.IN_PLACE
        more: list[Any] = [self.operation]
        if case.call == "Reduce":
            root = case.members.groups[case.root_side].index(case.root)
            if case.members.inter and case.members.side == case.root_side:
                sent, root = None, MPI.ROOT if self.is_root else MPI.PROC_NULL
            kept = kept if self.is_root else None
            more.append(root)
        elif case.call == "Reduce_scatter":
            kept = [self.kept, len(self.kept), self.datatype]
            more.insert(0, self.counts)
        names = {"blocking": case.call, "nonblocking": f"I{case.call.lower()}"}
        function = getattr(case.members.comm, names.get(case.mode, f"{case.call}_init"))
        return function(sent, kept, *more)

    def expected(self, turn: int) -> Any:
        """The elements that this rank has to get; None where it gets none."""
        case, members = self.case, self.case.members
        givers = members.remote
        if case.call == "Reduce" and not self.is_root:
            return None
        if case.call == "Scan":
            givers = givers[: members.rank + 1]
        elif case.call == "Exscan":
            givers = givers[: members.rank]
        if not givers:
            return None
        with np.errstate(all="ignore"):
            every = reduce(MODEL[case.operation], (self.values(turn, rank) for rank in givers))
        return every[self.before : self.before + self.got]

    def check(self, turn: int) -> None:
        """Judge what came, what was lent, and the bytes around."""
        judge, want = self.program.judge, self.expected(turn)
        what = f"{self.case}, turn {turn}"
        judge.compare(self.sent_whole, self.lent, f"{what}: the send buffer")
        if want is None:
            return
        judge.compare(self.kept[: len(want)], want, what)
        before = self.kept.ctypes.data - self.kept_whole.ctypes.data if self.kept.size else 0
        after = before + self.kept.nbytes
        around = np.concatenate((self.kept_whole[:before], self.kept_whole[after:]))
        judge.compare(around, np.full_like(around, GUARD), f"{what}: beside the buffer")


def run(program: Program) -> None:
    """Some reductions, some of them at a time."""
    every = draw_communicators(program)
    pending = []
    for number in range(program.chance.randint(1, 6)):
        case = Case(program, program.chance.choice(every), number)
        if case.members.side is None:
            continue
        reduction = Reduction(program, case)
        reduction.fill_memory(0)
        request = reduction.begin()
        if case.mode == "nonblocking":
            pending.append((request, reduction))
            continue
        for turn in range(case.turns):
            if request is not None:
                reduction.fill_memory(turn)
                request.Start()
                request.Wait()
            reduction.check(turn)
        if request is not None:
            request.Free()
    program.own.shuffle(pending)
    for request, reduction in pending:
        request.Wait()
        reduction.check(0)
    free_all(every)
