"""Teams: some ranks of a job, with ranks of their own, collectives and barriers among them.

A team's number is made of what all its members know, so that nobody has to give it: of the
parent's, the number of the split and the color; or of the members and how often they have made such
a team.

Source: reference gasnet.md 14 (Teams).
"""

# ruff: noqa: SLF001 - teams are private to users, not to this package

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from struct import pack
from typing import TYPE_CHECKING, Final

from ompy.frameworks.collectives.call_order import DIGEST, WORD
from ompy.gasnet.collective.coll_calls import Call
from ompy.gasnet.dissemination import ANONYMOUS, MISMATCH, Dissemination
from ompy.gasnet.errors import BadArgument, BarrierMismatch
from ompy.gasnet.rank import check_integers
from ompy.runtime.diagnosis.call_account import Group, share

if TYPE_CHECKING:
    from ompy.gasnet.collective.coll_engine import CollectiveEngine
    from ompy.gasnet.collective.coll_operation import Operation

ID_BITS: Final = 62  # arbitrary: two arguments of a message have 63, see `halves`
REMEMBERED: Final = 1024  # arbitrary: calls that a member which is late may still be compared with
TOLD: Final = 16  # arbitrary: as far as members are apart without noticing
SHOWN: Final = 8  # arbitrary: members in a team's words


class AllRanks:
    """Stands for the team of all ranks, in any rank."""

    def __repr__(self) -> str:
        return "TEAM_ALL"


TEAM_ALL: Final = AllRanks()


class Team:
    """Some ranks, as one of them has it.

    Attributes:
        id: the same at all members.
        nodes: members by their rank in the team.
        size: how many.
        rank: this one's.
        begun: collectives that this member has begun.
        digest: of all of them, in their order.
        active: those of them under way, by number.
        past: those that are over, the last of them.
        early: messages of collectives that this member has not begun, by number.
        broken: why no more collectives can be made, or None.
        barrier: its machine.
        given: name and flags that this member has notified.
        freed: it is used no more.
    """

    def __init__(self, owner: CollectiveEngine, id_: int, nodes: Sequence[int]) -> None:
        self.owner = owner
        self.id = id_
        self.nodes = tuple(nodes)
        self.size = len(self.nodes)
        self._ranks = {node: rank for rank, node in enumerate(self.nodes)}
        self.rank = self._ranks[owner._me]
        self.begun = 0
        self.digest = 0
        self.active: dict[int, Operation] = {}
        self.past: OrderedDict[int, Call] = OrderedDict()
        self.early: dict[int, list[tuple[int, list[int], bytes]]] = {}
        self.broken: str | None = None
        self.barrier = Dissemination(self.rank, self.size)
        self.given = (0, ANONYMOUS)
        self.freed = False

    def rank2node(self, rank: int) -> int:
        """The rank of the job that a rank of the team is.

        Raises:
            BadArgument: there is no such rank.
        """
        check_integers(rank)
        if not 0 <= rank < self.size:
            raise BadArgument(f"{self} has no rank {rank}: they are 0 to {self.size - 1}")
        return self.nodes[rank]

    def node2rank(self, node: int) -> int:
        """The rank in the team of a rank of the job.

        Raises:
            BadArgument: it is not in the team.
        """
        check_integers(node)
        rank = self._ranks.get(node)
        if rank is None:
            raise BadArgument(f"node {node} is not in {self}")
        return rank

    def begin_call(self, op: Operation) -> None:
        """A collective begins."""
        self.begun = op.number
        self.active[op.number] = op
        for word in op.call.words():
            self.digest = (self.digest ^ word) * DIGEST & WORD

    def balance(self) -> int:
        """What this team adds to its member's account (`runtime/diagnosis/call_account.py`)."""
        said = (self.id, self.nodes[0], self.size, self.digest)
        return share(said, self.size, self.rank == 0)

    def group(self) -> Group:
        """The last calls, for that account."""
        calls = {**self.past, **{number: op.call for number, op in self.active.items()}}
        last = [(number, str(calls[number])) for number in sorted(calls)[-TOLD:]]
        return f"team {self.id}", self.nodes[0], str(self), self.owner._me, last

    def ended(self, number: int) -> None:
        """A collective is over."""
        self.past[number] = self.active.pop(number).call
        if len(self.past) > REMEMBERED:
            self.past.popitem(last=False)

    # --- its barrier, whose rounds the owner sends

    def check_notify(self, flags: int) -> None:
        """Raises: BadArgument: this member is in a barrier, or flags are unknown."""
        if flags & ~(ANONYMOUS | MISMATCH):
            raise BadArgument(f"a barrier has no flags {flags}")
        if self.barrier.entered:
            raise BadArgument(f"this rank has notified a barrier of {self} already")

    def check_entered(self) -> None:
        """Raises: BadArgument: this member is in no barrier."""
        if not self.barrier.entered:
            raise BadArgument(f"this rank has entered no barrier of {self}: notify it first")

    def leave(self, name: int, flags: int) -> None:
        """Leave a barrier that is complete.

        Raises:
            BarrierMismatch: as `Gasnet.barrier_wait`.
        """
        known = self.barrier.leave()
        if (flags, 0 if flags else name) != (self.given[1], 0 if flags else self.given[0]):
            given = "barrier {} with flags {}".format(*self.given)
            raise BarrierMismatch(f"notified {given}, waited for {name} with flags {flags}")
        if known.flags & MISMATCH:
            raise BarrierMismatch(f"the ranks of {self} did not name the same barrier")

    def __repr__(self) -> str:
        if not self.id:
            return "TEAM_ALL"
        more = ", ..." if self.size > SHOWN else ""
        return f"the team of ranks {', '.join(map(str, self.nodes[:SHOWN]))}{more}"


def child_id(*what: int) -> int:
    """A team's number, of what its members know; never that of all ranks."""
    digest = digest_of(what)
    return int.from_bytes(digest[:8], "little") >> 64 - ID_BITS or 1


def digest_of(numbers: Iterable[int]) -> bytes:
    """Sixteen bytes that no other numbers have."""
    from hashlib import blake2b  # not at the start of a rank

    known = list(numbers)
    return blake2b(pack(f"<{len(known)}q", *known), digest_size=16).digest()


def members_of(nodes: Iterable[int], ranks: int, me: int) -> tuple[int, ...]:
    """The members that a list names.

    Raises:
        BadArgument: one is no rank or there twice, or this rank is not among them.
    """
    found = tuple(nodes)
    check_integers(*found)
    wrong = [node for node in found if not 0 <= node < ranks]
    if wrong:
        raise BadArgument(f"there is no node {wrong[0]}: they are 0 to {ranks - 1}")
    if len(set(found)) != len(found):
        raise BadArgument("a rank is in a team once")
    if me not in found:
        raise BadArgument(f"this rank, {me}, is not in the team it makes: {list(found)}")
    return found
