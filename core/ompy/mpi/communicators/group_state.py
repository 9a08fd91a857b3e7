"""What handles of groups refer to."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, Final

from ompy.compiled import ccall, cclass
from ompy.data.constants import PROC_NULL, UNDEFINED
from ompy.data.errors import ERR_GROUP, ERR_RANK
from ompy.frameworks.proc import Proc
from ompy.mpi import constants
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, State, handle_like
from ompy.mpi.state import CommState, World


@cclass
class GroupState(State):
    """Processes in an order.

    Attributes:
        me: the one that asks, or None in the empty group.
        procs: the processes.
        world: what it comes from: the rank's or a session's; None where that is not known.
    """

    _places: dict[Proc, int] | None
    me: Any
    procs: tuple[Proc, ...]
    world: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, procs: Iterable[Proc], me: Proc | None, world: World | None = None) -> None:
        self.number = 0
        self._places = None
        self.me = me
        self.procs = tuple(procs)
        self.world = world

    @ccall
    def places(self) -> dict[Proc, int]:
        """The rank of each process. Not to be changed."""
        if self._places is None:
            self._places = {proc: rank for rank, proc in enumerate(self.procs)}
        return self._places


EMPTY_GROUP: Final = GroupState((), None)


@ccall
def new_group(procs: Any, me: Any, world: Any) -> GroupState:
    """Processes in an order; `GroupState` says what is what."""
    made: GroupState = GroupState.__new__(GroupState)
    made.number = 0
    made._places = None
    made.me = me
    made.procs = tuple(procs)
    made.world = world
    return made


@ccall
def group_of(comm: CommState) -> GroupState:
    """The members of a communicator; between two groups, those of this process's own."""
    found: GroupState | None = comm.group
    if found is None:
        world = comm.world
        found = new_group(comm.communicator.own, world.context.me, world)
        comm.group = found
    return found


@ccall
def state_of_group(group: Handle) -> GroupState:
    """What a handle of a group refers to.

    Raises:
        MPIException: ERR_GROUP, it is null.
    """
    state: GroupState | None = group._inner
    if state is None:
        raise MPIException(ERR_GROUP, "the group is null (GROUP_NULL, or freed)")
    return state


@ccall
def likeness_of_groups(mine: GroupState, theirs: GroupState) -> int:
    """IDENT for the same processes in the same order, SIMILAR in another, else UNEQUAL."""
    if mine is theirs or mine.procs == theirs.procs:
        return constants.IDENT
    alike = len(mine.procs) == len(theirs.procs) and set(mine.procs) == set(theirs.procs)
    return constants.SIMILAR if alike else constants.UNEQUAL


@ccall
def like_group(group: GroupState) -> GroupState:
    """A group of the same processes."""
    if not group.procs:
        return EMPTY_GROUP
    made: GroupState = GroupState.__new__(GroupState)
    made.number = 0
    made._places = group._places
    made.me = group.me
    made.procs = group.procs
    made.world = group.world
    return made


@ccall
def group_with(group: Handle, procs: list[Proc], other: GroupState | None) -> GroupState:
    """A group of processes that this process knows, from one group and maybe another."""
    if not procs:
        return EMPTY_GROUP
    source = state_of_group(group)
    if source.me is None and other is not None:
        source = other
    return new_group(procs, source.me, source.world)


@ccall
def procs_of_ranks(group: Handle, ranks: Sequence[int]) -> list[Proc]:
    """Some of a group's processes.

    Raises:
        MPIException: ERR_RANK, there is no such rank, or one is named twice.
    """
    procs = state_of_group(group).procs
    size: int = len(procs)
    found: list[Proc] = []
    for each in ranks:
        rank: int = index(each)
        if not 0 <= rank < size:
            raise no_such_rank(size, each)
        found.append(procs[rank])
    if len(found) > 1 and len(set(found)) != len(found):
        raise MPIException(ERR_RANK, f"a rank is named twice in {list(ranks)}")
    return found


@ccall
def translated_ranks(group: Handle, ranks: Sequence[int] | None, other: Handle | None) -> list[int]:
    """The ranks in another group of processes given by their ranks in this one.

    Raises:
        MPIException: ERR_RANK, there is no such rank.
    """
    procs = state_of_group(group).procs
    size: int = len(procs)
    places = None if other is None else state_of_group(other).places()
    found: list[int] = []
    for each in range(size) if ranks is None else ranks:
        if each == PROC_NULL:
            found.append(PROC_NULL)
            continue
        rank: int = index(each)
        if not 0 <= rank < size:
            raise no_such_rank(size, each)
        proc = procs[rank]
        found.append(proc.rank if places is None else places.get(proc, UNDEFINED))
    return found


@ccall
def group_of_ranks(group: Handle, ranks: Sequence[int]) -> Any:
    """A handle, of the group's class, of some of a group's processes.

    Raises:
        MPIException: as `procs_of_ranks`.
    """
    return handle_like(group, group_with(group, procs_of_ranks(group, ranks), None))


@ccall
def union_of_groups(group: Handle, other: Handle) -> GroupState:
    """A group's processes, then those only another one has."""
    first = state_of_group(group)
    second = state_of_group(other)
    known = first.places()
    added = [proc for proc in second.procs if proc not in known]
    if not added and first.me is not None:
        return like_group(first)
    return group_with(group, [*first.procs, *added], second)


@ccall
def free_group(group: Handle) -> None:
    """Make a handle null, unless it is predefined."""
    state_of_group(group)
    if not group._name:
        group._inner = None


def no_such_rank(size: int, rank: int) -> MPIException:
    """The exception for a rank that a group does not have."""
    return MPIException(ERR_RANK, f"rank {rank} does not exist in a group of {size}")
