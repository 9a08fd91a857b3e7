"""`MPI.Group`: processes in an order."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from ompy.data.constants import UNDEFINED
from ompy.data.errors import ERR_ARG, ERR_RANK
from ompy.mpi.communicators.group_state import (
    EMPTY_GROUP,
    GroupState,
    free_group,
    group_of_ranks,
    group_with,
    like_group,
    likeness_of_groups,
    procs_of_ranks,
    state_of_group,
    translated_ranks,
    union_of_groups,
)
from ompy.mpi.constants import IDENT
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, handle_for, handle_like, made_plainly
from ompy.mpi.kinds import check_kind

if TYPE_CHECKING:
    from ompy.mpi.processes.sessions import Session


@made_plainly
class Group(Handle):
    """An ordered set of processes."""

    __slots__ = ()
    _kind: ClassVar[str] = "Group"

    def __new__(cls, group: Group | None = None) -> Self:
        """A null handle, or another one for the same group."""
        made: Self = handle_for(cls, group)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, GroupState)

    def _state(self) -> GroupState:
        return state_of_group(self)

    def Get_size(self) -> int:
        """How many processes there are."""
        state: GroupState = state_of_group(self)
        return len(state.procs)

    def Get_rank(self) -> int:
        """This process's rank, or UNDEFINED if it is not a member."""
        state: GroupState = state_of_group(self)
        return UNDEFINED if state.me is None else state.places().get(state.me, UNDEFINED)

    @property
    def size(self) -> int:
        """How many processes there are."""
        return len(state_of_group(self).procs)

    @property
    def rank(self) -> int:
        """This process's rank, or UNDEFINED."""
        state: GroupState = state_of_group(self)
        return UNDEFINED if state.me is None else state.places().get(state.me, UNDEFINED)

    def Translate_ranks(
        self, ranks: Sequence[int] | None = None, group: Group | None = None
    ) -> list[int]:
        """The ranks in another group of processes given by their ranks in this one.

        Args:
            ranks: all of them if None.
            group: the other group; the world's if None.
        """
        if group is not None:
            check_kind(group, "Group", "group")
        return translated_ranks(self, ranks, group)

    def Compare(self, group: Group) -> int:
        """IDENT for the same processes in the same order, SIMILAR in another, else UNEQUAL."""
        if type(group) is not Group:
            check_kind(group, "Group", "group")
        first: GroupState = state_of_group(self)
        second: GroupState = state_of_group(group)
        return IDENT if first is second else likeness_of_groups(first, second)

    def Dup(self) -> Self:
        """A group of the same processes."""
        made: Self = handle_like(self, like_group(state_of_group(self)))
        return made

    @classmethod
    def Union(cls, group1: Group, group2: Group) -> Self:
        """The first group's processes, then those only the second has."""
        if type(group1) is not Group:
            check_kind(group1, "Group", "group1")
        if type(group2) is not Group:
            check_kind(group2, "Group", "group2")
        return cls._adopt(union_of_groups(group1, group2))

    @classmethod
    def Intersection(cls, group1: Group, group2: Group) -> Self:
        """The first group's processes that are in the second."""
        check_kind(group1, "Group", "group1")
        check_kind(group2, "Group", "group2")
        others = state_of_group(group2).places()
        procs = [proc for proc in state_of_group(group1).procs if proc in others]
        return cls._adopt(group_with(group1, procs, None))

    Intersect = Intersection

    @classmethod
    def Difference(cls, group1: Group, group2: Group) -> Self:
        """The first group's processes that are not in the second."""
        check_kind(group1, "Group", "group1")
        check_kind(group2, "Group", "group2")
        others = state_of_group(group2).places()
        procs = [proc for proc in state_of_group(group1).procs if proc not in others]
        return cls._adopt(group_with(group1, procs, None))

    def Incl(self, ranks: Sequence[int]) -> Self:
        """The processes of these ranks, in this order."""
        made: Self = group_of_ranks(self, ranks)
        return made

    def Excl(self, ranks: Sequence[int]) -> Self:
        """The processes of other ranks than these."""
        left_out = procs_of_ranks(self, ranks)
        known = set(left_out) if len(left_out) > 1 else left_out
        procs = [proc for proc in state_of_group(self).procs if proc not in known]
        made: Self = handle_like(self, group_with(self, procs, None))
        return made

    def Range_incl(self, ranks: Sequence[tuple[int, int, int]]) -> Self:
        """The processes of ranges (first, last, stride) of ranks."""
        return self.Incl(_ranges(ranks, len(state_of_group(self).procs)))

    def Range_excl(self, ranks: Sequence[tuple[int, int, int]]) -> Self:
        """The processes outside ranges (first, last, stride) of ranks."""
        return self.Excl(_ranges(ranks, len(state_of_group(self).procs)))

    @classmethod
    def Create_from_session_pset(cls, session: Session, pset_name: str) -> Self:
        """The processes of a session's set."""
        check_kind(session, "Session", "session")
        found = session.Create_group(pset_name)
        return found if type(found) is cls else cls._make(found)

    def Free(self) -> None:
        """Free it."""
        free_group(self)


def _ranges(ranges: Sequence[tuple[int, int, int]], size: int) -> list[int]:
    """The ranks of ranges. One that names none of the group is not counted out: it may be long."""
    ranks: list[int] = []
    for first, last, stride in ranges:
        if not stride:
            raise MPIException(ERR_ARG, f"the range {(first, last, stride)} has no stride")
        found = range(first, last + (1 if stride > 0 else -1), stride)
        if not found:
            continue
        for rank in (found[0], found[-1]):
            if not 0 <= rank < size:
                where = f"rank {rank} of the range {(first, last, stride)}"
                raise MPIException(ERR_RANK, f"{where} is not in a group of {size}")
        ranks += found
    return ranks


GROUP_NULL: Final = Group()._constant("GROUP_NULL")
GROUP_EMPTY: Final = Group._adopt(EMPTY_GROUP)._constant("GROUP_EMPTY")
