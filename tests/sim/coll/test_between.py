"""Collective calls between two groups: every call there is, against a model of what it gives.

The calls come from the API's own list of them, so that a new one enters by itself. Ranks 0 to
`low - 1` are one group, the others the other; each call is made with either group as the root's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from ompy import MPI
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.diagnosis.call_account import account, complaint
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll.every_call import BETWEEN_GROUPS
from tests.support.effort import effort
from tests.support.worlds import virtual

COUNT = 3
# of one group only, or not of a communicator between two
ONE_GROUP = ("scan", "exscan", "neighbor", "create", "split", "dup", "sub", "win.")
WITHOUT_BUFFERS = ("agree", "shrink")
BUFFERS = [
    name
    for name in KINDS
    if name[0].isupper()
    and not name.lower().removeprefix("i").startswith((*ONE_GROUP, *WITHOUT_BUFFERS))
    and name not in BETWEEN_GROUPS
]
OBJECTS = [name for name in KINDS if name[0].islower() and not name.startswith(ONE_GROUP)]


class Side(NamedTuple):
    """One member's view.

    Attributes:
        own: COMM_WORLD's ranks of its group.
        other: of the other one.
        rank: its own in COMM_WORLD.
    """

    own: list[int]
    other: list[int]
    rank: int

    @property
    def place(self) -> int:
        return self.own.index(self.rank)


# how messages go; "memory" begins with the calls after which both groups share some
WAYS = {"sm": "self,sm", "tcp": "self,tcp", "memory": "self,sm"}
EARLY = 9  # calls


def between(
    world: Any, low: int, leaders: tuple[int, int] = (0, 0), *, way: str = ""
) -> tuple[Any, Side]:
    """A communicator between the first `low` ranks and the others."""
    ranks = list(range(world.size))
    first = world.rank < low
    groups = (ranks[:low], ranks[low:]) if first else (ranks[low:], ranks[:low])
    local = world.Split(int(first), world.rank)
    here, there = leaders if first else leaders[::-1]
    made = local.Create_intercomm(here, world, groups[1][there], 7)
    local.Free()
    for _ in range(EARLY if way == "memory" else 0):
        made.Barrier()
    assert (made._state().communicator.united is not None) is (way == "memory")
    return made, Side(*groups, world.rank)


def data(rank: int, count: int = COUNT) -> np.ndarray:
    return np.arange(count, dtype="i8") + 100 * (rank + 1)


def blocks(rank: int, places: int) -> np.ndarray:
    """What a member has for each of so many, one after the other."""
    return np.concatenate([data(rank) + 10_000 * (place + 1) for place in range(places)])


def room(count: int) -> np.ndarray:
    return np.full(count, -1, "i8")


class Made(NamedTuple):
    """A call to make.

    Attributes:
        arguments: of it.
        result: where its result comes, or None.
        expected: what comes there.
    """

    arguments: tuple[Any, ...]
    result: np.ndarray | None
    expected: Any


def on_buffers(plain: str, side: Side, root: int, of_root: bool) -> Made:
    """A call by its plain name in lower case; `root` is the root's place in its group."""
    own, other, place = side.own, side.other, side.place
    is_root = of_root and place == root
    named = (MPI.ROOT if is_root else MPI.PROC_NULL) if of_root else root
    mine, there = data(side.rank), len(other)
    types, counts = [MPI.INT64_T] * there, [COUNT] * there
    steps = [COUNT * 8 * step for step in range(there)]
    if plain == "barrier":
        return Made((), None, None)
    if plain == "bcast":
        buffer = mine if is_root else None if of_root else room(COUNT)
        expected = None if of_root else data(other[root])
        return Made((buffer, named), None if of_root else buffer, expected)
    if plain in {"gather", "gatherv"}:
        into = room(COUNT * there) if is_root else None
        expected = np.concatenate([data(rank) for rank in other]) if is_root else None
        return Made((None if of_root else mine, into, named), into, expected)
    if plain in {"scatter", "scatterv"}:
        into = None if of_root else room(COUNT)
        whole = blocks(side.rank, there) if is_root else None
        expected = None if of_root else blocks(other[root], len(own))[COUNT * place :][:COUNT]
        return Made((whole, into, named), into, expected)
    if plain in {"allgather", "allgatherv"}:
        into = room(COUNT * there)
        return Made((mine, into), into, np.concatenate([data(rank) for rank in other]))
    if plain.startswith("alltoall"):
        into, whole = room(COUNT * there), blocks(side.rank, there)
        expected = np.concatenate([blocks(r, len(own))[COUNT * place :][:COUNT] for r in other])
        if plain == "alltoallv":
            return Made(([whole, counts], [into, counts]), into, expected)
        if plain == "alltoallw":
            places = (counts, steps)
            return Made(([whole, places, types], [into, places, types]), into, expected)
        return Made((whole, into), into, expected)
    total = sum(data(rank) for rank in other)
    if plain == "reduce":
        into = room(COUNT) if is_root else None
        given = None if of_root else mine
        return Made((given, into, MPI.SUM, named), into, total if is_root else None)
    if plain == "allreduce":
        into = room(COUNT)
        return Made((mine, into), into, total)
    assert plain in {"reduce_scatter_block", "reduce_scatter"}, plain
    each = len(other)  # elements of a part: both groups' data have one length
    whole = data(side.rank, len(own) * len(other))
    parts = sum(data(rank, len(own) * len(other)) for rank in other)
    into = room(each)
    more = ([each] * len(own),) if plain == "reduce_scatter" else ()
    return Made((whole, into, *more), into, parts[each * place :][:each])


def make_call(comm: Any, name: str, made: Made) -> None:
    begun = getattr(comm, name)(*made.arguments)
    for _ in range(2 if name.endswith("_init") else 1 if begun is not None else 0):
        if name.endswith("_init"):
            begun.Start()
        begun.Wait()


def agree(side: Side, name: str, made: Made) -> None:
    if made.expected is None:
        assert made.result is None or (made.result == -1).all(), (name, side)
    else:
        assert (made.result == made.expected).all(), (name, side, made.result, made.expected)


@pytest.mark.parametrize("seed", range(effort(1)))
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("ranks", "low"), [(2, 1), (4, 1), (5, 3)])
def test_calls_on_buffers(ranks: int, low: int, way: str, seed: int) -> None:
    def program(process: RankProcess) -> str:
        comm, side = between(world_of(process), low, way=way)
        for name in BUFFERS:
            plain = name.removesuffix("_init").lower()
            plain = plain.removeprefix("i") if name.startswith("I") else plain
            for low_is_root in (True, False):
                of_root = (side.rank < low) is low_is_root
                members = side.own if of_root else side.other
                for root in {0, len(members) - 1}:
                    made = on_buffers(plain, side, root, of_root)
                    make_call(comm, name, made)
                    agree(side, name, made)
        inner = comm._state().communicator
        assert (inner.united is None) is (way == "tcp")
        return account([inner], process.calls_ended)

    accounts = virtual(ranks, program, seed=seed, btl=WAYS[way]).results
    assert complaint(dict(enumerate(accounts))) == ""


def objects(name: str, side: Side, root: int, of_root: bool) -> tuple[tuple[Any, ...], Any]:
    """Arguments of a call on objects, and what it gives."""
    own, other = side.own, side.other
    is_root = of_root and side.place == root
    named = (MPI.ROOT if is_root else MPI.PROC_NULL) if of_root else root
    mine, theirs = [side.rank], [[rank] for rank in other]
    if name == "bcast":
        return (mine if is_root else None, named), None if of_root else theirs[root]
    if name == "gather":
        return (None if of_root else mine, named), theirs if is_root else None
    if name == "scatter":
        items = [[side.rank, place] for place in range(len(other))] if is_root else None
        return (items, named), None if of_root else [other[root], side.place]
    if name == "allgather":
        return (mine,), theirs
    if name == "alltoall":
        items = [[side.rank, place] for place in range(len(other))]
        return (items,), [[rank, side.place] for rank in other]
    if name == "reduce":
        return (None if of_root else mine, MPI.SUM, named), list(other) if is_root else None
    assert name == "allreduce", name
    assert own
    return (mine,), list(other)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("ranks", "low"), [(2, 1), (4, 1), (5, 3)])
def test_calls_on_objects(ranks: int, low: int, way: str) -> None:
    def program(process: RankProcess) -> None:
        comm, side = between(world_of(process), low, way=way)
        comm.barrier()
        for name in OBJECTS:
            for low_is_root in (True, False):
                of_root = (side.rank < low) is low_is_root
                for root in {0, len(side.own if of_root else side.other) - 1}:
                    arguments, expected = objects(name, side, root, of_root)
                    assert getattr(comm, name)(*arguments) == expected, (name, side, root)

    virtual(ranks, program, btl=WAYS[way])


def test_there_are_calls() -> None:
    """So that a name that is not found does not empty the tests above."""
    assert len(BUFFERS) == 3 * 15
    assert len(OBJECTS) == 7


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("pair", [("Dup", "Barrier"), ("bcast", "allgather"), ("Merge", "Dup")])
def test_groups_that_make_different_calls(pair: tuple[str, str], late: int, way: str) -> None:
    """Both are told, by the names of the calls."""

    def call(comm: Any, name: str) -> Callable[[], Any]:
        method = getattr(comm, name)
        return {"bcast": lambda: method(1, 0), "allgather": lambda: method(1)}.get(name, method)

    def program(process: RankProcess) -> str:
        comm, side = between(world_of(process), 1, way=way)
        if side.rank == late:
            process.context.engine.spend(2_000_000)
        with pytest.raises(MPI.Exception) as raised:
            call(comm, pair[side.rank])()
        return str(raised.value)

    for said in virtual(2, program, btl=WAYS[way]).results:
        assert all(name in said for name in pair), said


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", ["bcast", "Bcast", "Ibcast", "Bcast_init"])
def test_groups_that_both_name_a_rank_of_the_other_one(form: str, way: str) -> None:
    """Each waits for a root in the other one: both are told, and nobody waits for ever."""

    def end(made: Any) -> None:
        if form == "Bcast_init":
            made.Start()
        made.Wait()

    def program(process: RankProcess) -> str:
        comm, side = between(world_of(process), 2, way=way)
        root = (MPI.PROC_NULL, MPI.ROOT, 1)[side.rank]
        assert comm.bcast(1, root) == (1 if side.rank == 2 else None), "this is right"
        with pytest.raises(MPI.Exception) as raised:
            end(getattr(comm, form)(bytearray(8), 0))
        world_of(process).Barrier()  # nobody has left before all are told
        return str(raised.value)

    said = virtual(3, program, btl=WAYS[way]).results
    told = [each for each in said if "(the first group is that of rank 0" in each]
    assert len(told) == len(said) or form not in {"bcast", "Bcast"}, "or another one has left"
    for each in told:
        assert "with its root in the first group" in each
        assert "with its root in the second group" in each
    assert told


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", ["Barrier", "allgather", "Dup", "Merge", "Ibarrier"])
def test_a_member_that_has_left(call: str, way: str) -> None:
    """Whoever waits for it, in the other group or for one that waits for it, gets an error."""

    def program(process: RankProcess) -> int:
        comm, side = between(world_of(process), 2, way=way)
        world_of(process).Barrier()
        if side.rank == 1:
            return 0
        try:
            made = getattr(comm, call)(*([1] if call == "allgather" else []))
            if call == "Ibarrier":
                made.Wait()
        except MPI.Exception as problem:
            return problem.Get_error_class()
        return 0

    settings = {"btl": WAYS[way], "pml_ob1_leave_patience_ms": 50}
    results = virtual(4, program, **settings).results
    assert set(results[2:]) == {MPI.ERR_PROC_FAILED}
    assert set(results) <= {0, MPI.ERR_PROC_FAILED}


SIZES = (1, 100, 9_000, 30_000)  # numbers; of a slot, lent, and more than a slot


@pytest.mark.parametrize("settings", [{}, {"coll_sm_single_copy": "0"}])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(("ranks", "low"), [(2, 1), (5, 3)])
def test_much_data_through_memory(
    ranks: int, low: int, gaps: bool, settings: dict[str, str]
) -> None:
    """Blocks that are shown, lent and sent, in one piece and with gaps, in any order of calls."""

    def buffer(numbers: np.ndarray, blocks: int = 1) -> Any:
        if not gaps:
            return numbers
        return [np.repeat(numbers, 2), len(numbers) // blocks, twos]

    def came(given: Any) -> np.ndarray:
        return np.asarray(given if not gaps else given[0][::2])

    twos = MPI.INT64_T.Create_resized(0, 16).Commit() if gaps else None

    def program(process: RankProcess) -> None:
        comm, side = between(world_of(process), low, way="memory")
        own, other = side.own, side.other
        for count in SIZES + SIZES[::-1]:
            mine = buffer(data(side.rank, count))
            gathered, total = buffer(room(count * len(other)), len(other)), buffer(room(count))
            comm.Allgather(mine, gathered)
            expected = [data(rank, count) for rank in other]
            assert (came(gathered) == np.concatenate(expected)).all()
            comm.Allreduce(mine, total)
            assert (came(total) == sum(expected)).all()
            waiting = [
                comm.Iallgather(mine, buffer(room(count * len(other)), len(other)))
                for _ in range(3)
            ]
            whole = np.concatenate([data(side.rank, count) + to for to in range(len(other))])
            exchanged = buffer(room(count * len(other)), len(other))
            comm.Alltoall(buffer(whole, len(other)), exchanged)
            place = own.index(side.rank)
            assert (came(exchanged) == np.concatenate([each + place for each in expected])).all()
            MPI.Request.Waitall(waiting)
            given = side.own if side.rank < low else side.other
            root = MPI.ROOT if side.rank == 0 else MPI.PROC_NULL if side.rank < low else 0
            received = mine if root == MPI.ROOT else buffer(room(count))
            comm.Bcast(received, root)
            if side.rank >= low:
                assert (came(received) == data(given[0], count)).all()

    virtual(ranks, program, btl="self,sm", **settings)


@pytest.mark.parametrize("form", ["Reduce", "Allreduce"])
def test_different_amounts_for_one_reduction(form: str) -> None:
    """Who gets less than it wants says so, and the next call is right."""

    def program(process: RankProcess) -> str:
        comm, side = between(world_of(process), 1, way="memory")
        count = 2 if side.rank == 2 else 3
        said = ""
        try:
            if form == "Allreduce":
                comm.Allreduce(room(count), room(count))
            elif side.rank:
                comm.Reduce(room(count), None, root=0)
            else:
                comm.Reduce(None, room(count), root=MPI.ROOT)
        except MPI.Exception as problem:
            said = str(problem)
        comm.Barrier()
        return said

    first, second, third = virtual(3, program, btl="self,sm").results
    assert "different amounts of data" in first
    assert second == ""
    assert ("where 16 are wanted" in third) is (form == "Allreduce")


MISTAKEN = [
    "Bcast",
    "Gather",
    "Allreduce",
    "Barrier",
    "Ibcast",
    "allgather",
    "bcast",
    "alltoall",
    "gather",
]
MAKING = ["Split", "Dup", "Create"]


@pytest.mark.parametrize("wrong", range(3))
@pytest.mark.parametrize("call", MISTAKEN + MAKING)
def test_one_member_takes_no_part(call: str, wrong: int) -> None:
    """The others hear of it, and the next calls are right; also where memory was to be made."""

    def attempt(comm: Any, side: Side, takes_part: bool) -> str:
        root = (MPI.ROOT, 0, 0)[side.rank]
        given = room(3 if side.rank or call != "Gather" else 6) if takes_part else 7
        calls: dict[str, Callable[[], Any]] = {
            "Bcast": lambda: comm.Bcast(given, root),
            "Gather": lambda: (
                comm.Gather(given, None, root) if side.rank else comm.Gather(None, given, root)
            ),
            "Allreduce": lambda: comm.Allreduce(given, room(3)),
            "Barrier": lambda: comm.Barrier() if takes_part else comm.Allreduce(given, room(3)),
            "Ibcast": lambda: comm.Ibcast(given, root).Wait(),
            "allgather": lambda: comm.allgather(1 if takes_part else (each for each in "")),
            "Split": lambda: comm.Split(0 if takes_part else "x", 0).Free(),
            "Dup": lambda: comm.Dup(None if takes_part else 7).Free(),
            "Create": lambda: comm.Create(comm.group if takes_part else 7).Free(),
            "bcast": lambda: comm.bcast(1, root if takes_part else 31),
            "alltoall": lambda: comm.alltoall([1] * (len(side.other) + 1 - takes_part)),
            "gather": lambda: comm.gather(
                1 if takes_part or not side.rank else (each for each in ""),
                root if takes_part or side.rank else 31,
            ),
        }
        try:
            calls[call]()
        except (MPI.Exception, TypeError, ValueError) as problem:
            return type(problem).__name__
        return ""

    def program(process: RankProcess) -> list[str]:
        comm, side = between(world_of(process), 1, way="sm")
        said = []
        for turn in range(2 * EARLY):
            takes_part = side.rank != wrong or turn % 4 != 2
            said.append(attempt(comm, side, takes_part))
            if turn % 4 == 3:
                comm.Barrier()  # a root that runs ahead forgets
        comm.Barrier()
        total = room(1)
        comm.Allreduce(np.ones(1, "i8"), total)
        assert total == len(side.other)
        return said

    results = virtual(3, program, btl="self,sm").results
    for turn, said in enumerate(zip(*results, strict=True)):
        assert any(said) is (turn % 4 == 2), (turn, said)


def test_both_groups_are_released_with_the_communicator() -> None:
    """Its id is free again, as that of both groups together."""

    def program(process: RankProcess) -> set[int]:
        world = world_of(process)
        before = set(process.communicators)
        for _ in range(5):
            comm, _ = between(world, 2, way="memory")
            request = comm.Ibarrier()
            comm.Free()
            request.Wait()
        world.Barrier()
        return set(process.communicators) - before

    assert virtual(3, program, btl="self,sm").results == [set()] * 3
