"""Random communicators of all kinds, and who is in them, also on ranks that are not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final

from ompy import MPI

from tests.support.differential.program import Program, some

Lists = list[list[int]]


@dataclass(frozen=True)
class Edges:
    """A topology; each list is of a rank of the program.

    Attributes:
        sources: it gets from; -1 for none.
        targets: it gives to; -1 for none.
        places: for each source, which of that one's targets the edge is.
    """

    sources: Lists
    targets: Lists
    places: Lists


class Members:
    """A communicator and its members, by their ranks in the program.

    Attributes:
        comm: None on ranks that are not in it.
        groups: its two ones; of an intracommunicator the same twice.
        name: in reports.
        edges: of its topology.
        side: which group this rank is in; None where it is not in it.
    """

    def __init__(
        self, me: int, comm: Any, groups: Lists, name: str, edges: Edges | None = None
    ) -> None:
        self.comm = comm
        self.inter = len(groups) == 2
        self.groups = groups if self.inter else groups * 2
        self.name = f"{name} {groups}"
        self.edges = edges
        self.side = next((side for side, group in enumerate(groups) if me in group), None)
        self.rank = self.local.index(me) if self.side is not None else -1

    @property
    def local(self) -> list[int]:
        """The group of this rank."""
        return self.groups[self.side or 0]

    @property
    def remote(self) -> list[int]:
        """Those it gives to and gets from."""
        return self.groups[1 - (self.side or 0)]


def one_copy(program: Program) -> list[Members]:
    """Of the program's communicator, made in the background."""
    comm, request = program.comm.Idup()
    request.Wait()
    return [Members(program.me, comm, [list(range(program.size))], "idup")]


def two_colours(program: Program) -> list[Members]:
    """Two that divide it, with members in another order."""
    chance, size = program.chance, program.size
    colours = [chance.randint(0, 1) for _ in range(size)]
    keys = [chance.randint(0, 5) for _ in range(size)]
    comm = program.comm.Split(colours[program.me], keys[program.me])
    found = []
    for colour in (0, 1):
        group = [rank for rank in range(size) if colours[rank] == colour]
        group.sort(key=lambda rank: (keys[rank], rank))
        if group:
            mine = comm if colours[program.me] == colour else None
            found.append(Members(program.me, mine, [group], "split"))
    return found


def of_group(program: Program, group: list[int], tag: int) -> Any:
    """The communicator of a group, on its members."""
    return program.comm.Create_group(program.comm.Get_group().Incl(group), tag)


def some_members(program: Program) -> list[Members]:
    """One of some ranks, in any order."""
    group = program.chance.sample(range(program.size), program.chance.randint(1, program.size))
    comm = of_group(program, group, 5) if program.me in group else None
    return [Members(program.me, comm, [group], "group")]


def two_groups(program: Program, merged: bool = False) -> list[Members]:
    """One between two groups, which need not have all ranks; or merged."""
    chance, me = program.chance, program.me
    if program.size == 1:
        return []
    ranks = chance.sample(range(program.size), program.size)
    cut = chance.randint(1, program.size - 1)
    groups = [ranks[:cut], ranks[cut:]]
    if len(groups[1]) > 1 and some(chance, 0.3):
        groups[1].pop()
    leaders = [chance.randrange(len(group)) for group in groups]
    first_is_high = some(chance, 0.5)
    comm = None
    for side, group in enumerate(groups):
        if me in group:
            local = of_group(program, group, 6)
            other = groups[1 - side][leaders[1 - side]]
            comm = local.Create_intercomm(leaders[side], program.comm, other, 77)
            local.Free()
            if merged:
                between = comm
                comm = between.Merge(first_is_high != bool(side))
                between.Free()
    if not merged:
        return [Members(me, comm, groups, "intercommunicator")]
    return [Members(me, comm, [[*chain(*groups[:: -1 if first_is_high else 1])]], "merged")]


def from_group(program: Program) -> list[Members]:
    """One that is made of a group, without another communicator."""
    group = program.chance.sample(range(program.size), program.chance.randint(1, program.size))
    comm = None
    if not program.one_world:
        return []
    if program.me in group:
        members = program.comm.Get_group().Incl(group)
        comm = MPI.Intracomm.Create_from_group(members, f"program {program.seed}, {group}")
    return [Members(program.me, comm, [group], "from group")]


def from_groups(program: Program) -> list[Members]:
    """One between two groups, which is made of these alone."""
    chance, me = program.chance, program.me
    if program.size == 1 or not program.one_world:
        return []
    ranks = chance.sample(range(program.size), program.size)
    cut = chance.randint(1, program.size - 1)
    groups = [ranks[:cut], ranks[cut:]]
    leaders = [chance.randrange(len(group)) for group in groups]
    side = 0 if me in groups[0] else 1
    every = program.comm.Get_group()
    ends = [every.Incl(groups[side]), leaders[side]]
    ends += [every.Incl(groups[1 - side]), leaders[1 - side]]
    comm = MPI.Intercomm.Create_from_groups(*ends, f"program {program.seed}, {groups}")
    return [Members(me, comm, groups, "from groups")]


def of_two_groups(program: Program) -> list[Members]:
    """Made of one between two groups: a copy, one of some members, or two by colour."""
    if program.size == 1:
        return []
    chance, me = program.chance, program.me
    (between,) = two_groups(program)
    how = chance.choice(("Dup", "Idup", "Create", "Split", "Split"))
    colours = [chance.randint(0, 1) if how == "Split" else 0 for _ in range(program.size)]
    keys = [chance.randint(0, 3) for _ in range(program.size)]
    kept = [chance.sample(group, chance.randint(1, len(group))) for group in between.groups]
    comm = None
    if between.side is not None:
        inter = between.comm
        if how == "Dup":
            comm = inter.Dup()
        elif how == "Idup":
            comm, request = inter.Idup()
            request.Wait()
        elif how == "Create":
            mine = [between.local.index(rank) for rank in kept[between.side]]
            comm = inter.Create(inter.Get_group().Incl(mine))
        else:
            comm = inter.Split(colours[me], keys[me])
        inter.Free()
    if how != "Split":
        groups = kept if how == "Create" else between.groups
        return [Members(me, comm, groups, f"{how} of intercommunicator")]
    found = []
    for colour in (0, 1):
        groups = [
            sorted(
                (rank for rank in group if colours[rank] == colour),
                key=lambda rank: (keys[rank], group.index(rank)),
            )
            for group in between.groups
        ]
        if all(groups):
            found.append(Members(me, comm, groups, "Split of intercommunicator"))
    return found


def neighbours_on_grid(rank: int, dims: list[int], periods: list[bool]) -> list[int]:
    """Those before and after it along each dimension; -1 beyond an edge."""
    place, rest = [], rank
    for length in reversed(dims):
        place.insert(0, rest % length)
        rest //= length
    found = []
    for axis, length in enumerate(dims):
        for step in (-1, 1):
            along = place[axis] + step
            if not periods[axis] and not 0 <= along < length:
                found.append(-1)
                continue
            other = 0
            for at, (here, size) in enumerate(zip(place, dims, strict=True)):
                other = other * size + (along % length if at == axis else here)
            found.append(other)
    return found


def grid(program: Program) -> list[Members]:
    """A Cartesian one. What comes from before was sent to after, and the other way round."""
    dims = list(MPI.Compute_dims(program.size, program.chance.randint(1, 3)))
    periods = [some(program.chance, 0.6) for _ in dims]
    near = [neighbours_on_grid(rank, dims, periods) for rank in range(program.size)]
    places = [[at ^ 1 for at, _ in enumerate(ranks)] for ranks in near]
    comm = program.comm.Create_cart(dims, periods)
    name = f"grid {dims} {periods}"
    return [Members(program.me, comm, [list(range(program.size))], name, Edges(near, near, places))]


def paired(sources: Lists, targets: Lists) -> Edges:
    """The edges of a graph: the first one from a source is the first one there to this rank."""
    places: Lists = []
    for rank, mine in enumerate(sources):
        left = {
            source: [at for at, to in enumerate(targets[source]) if to == rank]
            for source in set(mine)
        }
        places.append([left[source].pop(0) for source in mine])
    return Edges(sources, targets, places)


def directed(program: Program) -> list[Members]:
    """A graph of directed edges, some of them double, some to the rank itself."""
    chance, size = program.chance, program.size
    edges = [
        (chance.randrange(size), chance.randrange(size)) for _ in range(chance.randint(0, 3 * size))
    ]
    sources = [[begin for begin, end in edges if end == rank] for rank in range(size)]
    targets = [[end for begin, end in edges if begin == rank] for rank in range(size)]
    for ranks in (*sources, *targets):
        chance.shuffle(ranks)
    comm = program.comm.Create_dist_graph_adjacent(sources[program.me], targets[program.me])
    name = f"directed {sources} {targets}"
    return [Members(program.me, comm, [list(range(size))], name, paired(sources, targets))]


def undirected(program: Program) -> list[Members]:
    """A graph in which both ends of an edge have it."""
    chance, size = program.chance, program.size
    edges: set[tuple[int, int]] = set()
    for _ in range(chance.randint(0, 2 * size)):
        begin, end = chance.randrange(size), chance.randrange(size)
        edges |= {(begin, end), (end, begin)}
    near = [[end for begin, end in sorted(edges) if begin == rank] for rank in range(size)]
    index = [sum(map(len, near[:rank])) for rank in range(size + 1)]
    comm = program.comm.Create_graph(index, [*chain(*near)])
    return [Members(program.me, comm, [list(range(size))], f"graph {near}", paired(near, near))]


def by_anybody(program: Program) -> list[Members]:
    """A graph whose edges any rank names; in which order neighbours are is not said by MPI."""
    chance, size = program.chance, program.size
    edges = [
        (chance.randrange(size), chance.randrange(size)) for _ in range(chance.randint(0, 3 * size))
    ]
    named = [chance.randrange(size) for _ in edges]
    mine = [edge for edge, rank in zip(edges, named, strict=True) if rank == program.me]
    begins = sorted({begin for begin, _ in mine})
    ends = [[end for begin, end in mine if begin == one] for one in begins]
    comm = program.comm.Create_dist_graph(begins, [len(one) for one in ends], [*chain(*ends)])
    near = program.comm.allgather([list(ranks) for ranks in comm.Get_dist_neighbors()[:2]])
    sources, targets = [one[0] for one in near], [one[1] for one in near]
    for rank in range(size):
        program.judge.require(
            [sorted(sources[rank]), sorted(targets[rank])],
            [
                sorted(begin for begin, end in edges if end == rank),
                sorted(end for begin, end in edges if begin == rank),
            ],
            f"neighbours of rank {rank}",
        )
    name = f"graph by anybody {edges}"
    return [Members(program.me, comm, [list(range(size))], name, paired(sources, targets))]


def part_of_grid(program: Program) -> list[Members]:
    """Lines or planes of a Cartesian one, one after the other."""
    chance, size = program.chance, program.size
    dims = list(MPI.Compute_dims(size, chance.randint(1, 3)))
    periods = [some(chance, 0.6) for _ in dims]
    remain = [some(chance, 0.5) for _ in dims]
    whole = program.comm.Create_cart(dims, periods)
    comm = whole.Sub(remain)
    places = [whole.Get_coords(rank) for rank in range(size)]
    whole.Free()
    parts: dict[tuple[int, ...], list[int]] = {}
    for rank, place in enumerate(places):
        left = tuple(at for at, keeps in zip(place, remain, strict=True) if not keeps)
        parts.setdefault(left, []).append(rank)
    found = []
    for group in parts.values():
        mine = comm if program.me in group else None
        found.append(Members(program.me, mine, [group], f"part of grid {dims} {remain}"))
    return found


WAYS: Final = (
    *(from_group, from_groups, of_two_groups, of_two_groups, by_anybody, part_of_grid),
    *(one_copy, two_colours, some_members, two_groups, two_groups),
    *(partial(two_groups, merged=True), grid, directed, directed, undirected),
)


def draw_communicators(program: Program) -> list[Members]:
    """A copy of the program's, and some others."""
    found = [Members(program.me, program.comm.Dup(), [list(range(program.size))], "dup")]
    for _ in range(program.chance.randint(1, 4)):
        found += program.chance.choice(WAYS)(program)
    return found


def free_all(every: list[Members]) -> None:
    """Free those that this rank has."""
    for members in every:
        if members.side is not None:
            members.comm.Free()
