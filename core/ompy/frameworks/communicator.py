"""A communicator as PML and coll see it: ranks, and a context that keeps traffic apart.

One between two groups (an *intercommunicator*) differs in whom its ranks name: `procs` and `size`
are of the other group, those whom messages are for, and `rank` is this process's place in its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ompy.compiled import cclass
from ompy.frameworks.call_order import CallOrder, GroupsOrder
from ompy.frameworks.proc import Proc

if TYPE_CHECKING:
    from ompy.frameworks.coll_selection import SelectedColl
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.pml import Pml


@cclass
class Communicator:
    """One group of processes, or two, with a context id all of them agree on.

    Attributes:
        context_id: 0..65535, the same in every member; no two live ones of a process share it.
        rank: of this process in its own group.
        size: processes whom messages are for.
        procs: these, by rank: the group; between two groups the other one.
        own: this process's group: `procs` itself, but between two groups.
        between: it is between two groups.
        name: for messages to people.
        context: this rank.
        pml: moves its messages.
        coll: its collectives; set when they were selected.
        order: the collective calls that were begun in it.
        pml_state: the PML's own.
    """

    between: bool
    coll: SelectedColl | None
    context: RankContext
    context_id: int
    name: str
    order: CallOrder
    own: list[Proc]
    pml: Pml
    pml_state: object | None
    procs: list[Proc]
    rank: int
    size: int
    __slots__ = (*__annotations__, "__weakref__")

    def __init__(
        self,
        context: RankContext,
        pml: Pml,
        context_id: int,
        procs: Sequence[Proc],
        name: str,
        own: Sequence[Proc] | None = None,
    ) -> None:
        self.context = context
        self.pml = pml
        self.context_id = context_id
        self.procs = list(procs)
        self.size = len(self.procs)
        self.between = own is not None
        self.own = self.procs if own is None else list(own)
        self.rank = self.own.index(context.me)
        self.name = name
        self.coll = None
        self.order = GroupsOrder() if self.between else CallOrder()
        self.pml_state = None
