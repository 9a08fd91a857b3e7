"""`MPI.Group`: processes in an order."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, Self

from ompy.data.constants import PROC_NULL, UNDEFINED
from ompy.data.errors import ERR_ARG, ERR_GROUP, ERR_RANK
from ompy.frameworks.proc import Proc
from ompy.mpi.constants import IDENT, SIMILAR, UNEQUAL
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, State
from ompy.mpi.unsupported import not_available


class GroupState(State):
    """Processes in an order.

    Attributes:
        procs: the processes.
        me: the one that asks, or None in the empty group.
    """

    __slots__ = ("me", "procs")

    def __init__(self, procs: Iterable[Proc], me: Proc | None) -> None:
        super().__init__()
        self.procs = tuple(procs)
        self.me = me


class Group(Handle):
    """An ordered set of processes."""

    __slots__ = ()
    _kind: ClassVar[str] = "Group"

    def __new__(cls, group: Group | None = None) -> Self:
        """A null handle, or another one for the same group."""
        return cls._make(group)

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, GroupState)

    def _state(self) -> GroupState:
        state: GroupState | None = self._inner
        if state is None:
            raise MPIException(ERR_GROUP, "the group is null (GROUP_NULL, or freed)")
        return state

    def _with(self, procs: Iterable[Proc], me: Proc | None = None) -> Self:
        """A group of processes that this process knows."""
        state = GroupState(procs, self._state().me or me)
        return type(self)._adopt(state if state.procs else EMPTY)

    def Get_size(self) -> int:
        """How many processes there are."""
        return len(self._state().procs)

    def Get_rank(self) -> int:
        """This process's rank, or UNDEFINED if it is not a member."""
        state = self._state()
        if state.me is None or state.me not in state.procs:
            return UNDEFINED
        return state.procs.index(state.me)

    @property
    def size(self) -> int:
        """How many processes there are."""
        return self.Get_size()

    @property
    def rank(self) -> int:
        """This process's rank, or UNDEFINED."""
        return self.Get_rank()

    def Translate_ranks(
        self, ranks: Sequence[int] | None = None, group: Group | None = None
    ) -> list[int]:
        """The ranks in another group of processes given by their ranks in this one.

        Args:
            ranks: all of them if None.
            group: the other group; the world's if None.
        """
        procs = self._state().procs
        wanted = range(len(procs)) if ranks is None else ranks
        for rank in wanted:
            if rank != PROC_NULL:
                self._check(rank)
        if group is None:
            return [rank if rank == PROC_NULL else procs[rank].rank for rank in wanted]
        others = {proc: place for place, proc in enumerate(group._state().procs)}
        return [
            PROC_NULL if rank == PROC_NULL else others.get(procs[rank], UNDEFINED)
            for rank in wanted
        ]

    def Compare(self, group: Group) -> int:
        """IDENT for the same processes in the same order, SIMILAR in another, else UNEQUAL."""
        mine, theirs = self._state().procs, group._state().procs
        if mine == theirs:
            return IDENT
        return SIMILAR if set(mine) == set(theirs) and len(mine) == len(theirs) else UNEQUAL

    def Dup(self) -> Self:
        """A group of the same processes."""
        return self._with(self._state().procs)

    @classmethod
    def Union(cls, group1: Group, group2: Group) -> Self:
        """The first group's processes, then those only the second has."""
        first, second = group1._state(), group2._state()
        procs = [*first.procs, *(proc for proc in second.procs if proc not in first.procs)]
        return cls._make(group1._with(procs, second.me))

    @classmethod
    def Intersection(cls, group1: Group, group2: Group) -> Self:
        """The first group's processes that are in the second."""
        others = group2._state().procs
        return cls._make(group1._with(p for p in group1._state().procs if p in others))

    Intersect = Intersection

    @classmethod
    def Difference(cls, group1: Group, group2: Group) -> Self:
        """The first group's processes that are not in the second."""
        others = group2._state().procs
        return cls._make(group1._with(p for p in group1._state().procs if p not in others))

    def Incl(self, ranks: Sequence[int]) -> Self:
        """The processes of these ranks, in this order."""
        procs = self._state().procs
        chosen = self._distinct(ranks)
        return self._with(procs[rank] for rank in chosen)

    def Excl(self, ranks: Sequence[int]) -> Self:
        """The processes of other ranks than these."""
        procs = self._state().procs
        left_out = set(self._distinct(ranks))
        return self._with(proc for rank, proc in enumerate(procs) if rank not in left_out)

    def Range_incl(self, ranks: Sequence[tuple[int, int, int]]) -> Self:
        """The processes of ranges (first, last, stride) of ranks."""
        return self.Incl(_ranges(ranks))

    def Range_excl(self, ranks: Sequence[tuple[int, int, int]]) -> Self:
        """The processes outside ranges (first, last, stride) of ranks."""
        return self.Excl(_ranges(ranks))

    @classmethod
    def Create_from_session_pset(cls, session: Any, pset_name: str) -> Self:  # noqa: ARG003
        """Not available: sessions come later."""
        raise not_available("Group.Create_from_session_pset", "sessions")

    def Free(self) -> None:
        """Free it."""
        self._state()
        if not self._name:
            self._inner = None

    def _check(self, rank: int) -> None:
        size = len(self._state().procs)
        if not 0 <= rank < size:
            raise MPIException(ERR_RANK, f"rank {rank} does not exist in a group of {size}")

    def _distinct(self, ranks: Sequence[int]) -> list[int]:
        for rank in ranks:
            self._check(rank)
        if len(set(ranks)) != len(ranks):
            raise MPIException(ERR_RANK, f"a rank is named twice in {list(ranks)}")
        return list(ranks)


def _ranges(ranges: Sequence[tuple[int, int, int]]) -> list[int]:
    ranks: list[int] = []
    for first, last, stride in ranges:
        if not stride:
            raise MPIException(ERR_ARG, f"the range {(first, last, stride)} has no stride")
        ranks += range(first, last + (1 if stride > 0 else -1), stride)
    return ranks


EMPTY: Final = GroupState((), None)
GROUP_NULL: Final = Group()._constant("GROUP_NULL")
GROUP_EMPTY: Final = Group._adopt(EMPTY)._constant("GROUP_EMPTY")
