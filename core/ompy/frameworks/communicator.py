"""A communicator as PML and coll see it: ranks, and a context that keeps traffic apart.

One between two groups (an *intercommunicator*) differs in whom its ranks name: `procs` and `size`
are of the other group, those whom messages are for, and `rank` is this process's place in its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ompy.compiled import U64, ccall, cclass
from ompy.frameworks.collectives.call_order import (
    FIRST_GROUP,
    SECOND_GROUP,
    WORD,
    CallOrder,
    GroupsOrder,
    mixed,
)
from ompy.frameworks.proc import Proc

if TYPE_CHECKING:
    from ompy.frameworks.collectives.coll_selection import SelectedColl
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
        named: it was given that name, or is known by it.
        served: messages in it are taken in whatever the program waits for: a window's.
        context: this rank.
        pml: moves its messages.
        chosen: its collectives, when they have been selected; else None.
        selecting: selects them, told the communicator; None where somebody sets them.
        united: one of both groups, for their collectives where they share memory; None without.
        uniting: makes it, told the communicator; all members call it together.
        order: the collective calls that were begun in it.
        pml_state: the PML's own.
        revoked: calls in it fail (`fault_tolerance/recovery.py`).
    """

    between: bool
    chosen: SelectedColl | None
    context: RankContext
    context_id: int
    name: str
    named: bool
    order: CallOrder
    own: list[Proc]
    pml: Pml
    pml_state: object | None
    procs: list[Proc]
    rank: int
    revoked: bool
    selecting: Callable[[Communicator], SelectedColl] | None
    served: bool
    size: int
    united: Communicator | None
    uniting: Callable[[Communicator], Communicator] | None
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
        """A communicator; with an empty name people are told its context id."""
        self.context = context
        self.pml = pml
        self.context_id = context_id
        self.procs = list(procs)
        self.size = len(self.procs)
        self.between = own is not None
        self.served = False
        self.own = self.procs if own is None else list(own)
        self.rank = self.own.index(context.me)
        self.named = name != ""
        self.name = name if self.named else f"communicator {context_id}"
        self.chosen = None
        self.selecting = None
        self.united = None
        self.uniting = None
        self.order = self._order()
        self.pml_state = None
        self.revoked = False

    def _order(self) -> CallOrder:
        if not self.between:
            return CallOrder()
        return GroupsOrder(FIRST_GROUP if self.leads() else SECOND_GROUP)

    def give_name(self, name: str) -> None:
        """Name it; empty for the usual name in messages to people."""
        self.named = name != ""
        self.name = name if self.named else f"communicator {self.context_id}"

    @property
    def coll(self) -> SelectedColl | None:
        """Its collectives; selected when they are first asked for, as many are never used."""
        return self.collectives()

    @coll.setter
    def coll(self, coll: SelectedColl | None) -> None:
        self.chosen = coll

    @ccall
    def collectives(self) -> SelectedColl | None:
        """The same as `coll`, which compiled callers find faster."""
        if self.chosen is None and self.selecting is not None:
            self.chosen = self.selecting(self)
        return self.chosen

    @ccall
    def members(self) -> int:
        """How many processes are in it, of both groups where there are two."""
        return self.size + (len(self.own) if self.between else 0)

    @ccall
    def first(self) -> Proc:
        """The member that counts for all: the first one; of two groups that of lower rank."""
        own: Proc = self.own[0]
        other: Proc = self.procs[0]
        return own if own.rank <= other.rank else other

    @ccall
    def leads(self) -> bool:
        """Whether this process's group is the first of two."""
        return self.first() is self.own[0]

    @ccall
    def balance(self) -> U64:
        """What its calls add to the account of this rank (`runtime/diagnosis/call_account.py`)."""
        size: U64 = self.members()
        if size < 2:
            return 0
        first = self.first()
        found = mixed(mixed(mixed(0, self.context_id), first.rank), size)
        found = mixed(found, self.order.digest)
        return found * (size - 1) & WORD if first is self.context.me else -found & WORD
