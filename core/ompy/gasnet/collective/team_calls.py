"""Making, asking, freeing teams; barriers of their members.

Source: reference gasnet.md 14 (Teams).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from struct import Struct, pack
from typing import Final

from ompy.frameworks.conduit import EXTENDED_HANDLERS, Category, Token
from ompy.gasnet.collective.coll_algorithms import NOTHING
from ompy.gasnet.collective.coll_calls import Call, CollFlag, Kind
from ompy.gasnet.collective.collectives import Collectives
from ompy.gasnet.collective.teams import AllRanks, Team, child_id, digest_of, members_of
from ompy.gasnet.dissemination import ANONYMOUS, Knowledge
from ompy.gasnet.errors import BadArgument, CollectiveMismatch
from ompy.gasnet.messages import words_of
from ompy.gasnet.rank import FindConduit, check_integers

TEAM_CREATE: Final = EXTENDED_HANDLERS[8]
CHOICE: Final = Struct("<qq")  # color and key of a split
DIGEST: Final = 16  # bytes of `digest_of`; arbitrary: no two lists have the same
NODE: Final = 4  # bytes; arbitrary: a rank in a message
SYNCS: Final = CollFlag.IN_MYSYNC | CollFlag.OUT_MYSYNC | CollFlag.LOCAL
COLOR_MAX: Final = (1 << 62) - 1  # arbitrary: what a signed word of 64 bits has


class TeamCalls(Collectives):
    """Teams of this rank."""

    def __init__(self, find: FindConduit) -> None:
        super().__init__(find)
        self._sent_creations: Counter[int] = Counter()  # by peer
        self._creations: dict[tuple[int, int], bytes] = {}  # by peer and number
        self._made: Counter[tuple[int, ...]] = Counter()
        self._creating: tuple[int, ...] = ()

    # --- making them

    def coll_team_create(self, nodes: Iterable[int]) -> Team:
        """Make a team of ranks of the job; those, and no others, call it with the same list.

        Args:
            nodes: its members, in the order of their ranks in the team; this one among them.

        Raises:
            BadArgument: the list is wrong, or this thread may not communicate now.
            CollectiveMismatch: a member of this team makes another one with this rank.
            ResourceError: a peer is gone.
        """
        self._check_coll()
        found = members_of(nodes, len(self._infos), self._me)
        others = [node for node in found if node != self._me]
        mine = digest_of(found) + pack(f"<{len(found)}I", *found)
        mine = mine[: DIGEST + (self._conduit.max_medium - DIGEST) // NODE * NODE]
        awaited = []
        for node in others:
            number = self._sent_creations[node] = self._sent_creations[node] + 1
            awaited.append((node, number))
            self._send_request(Category.MEDIUM, node, TEAM_CREATE, [number], memoryview(mine))
        self._creating = found
        try:
            self._wait_for(lambda: all(key in self._creations for key in awaited))
        finally:
            self._creating = ()
        theirs = {node: self._creations.pop((node, number)) for node, number in awaited}
        for node, list_ in theirs.items():
            if list_ != mine:
                raise CollectiveMismatch(
                    f"rank {self._me} makes the team {_shown(mine)}, "
                    f"rank {node} the team {_shown(list_)}"
                )
        self._made[found] += 1
        return self._add_team(child_id(-1, self._made[found], *found), found)

    def coll_team_split(self, team: Team | AllRanks, color: int | None, key: int) -> Team | None:
        """Cut a team into several: members that give the same color are together.

        Args:
            team: whose members all call it.
            color: 0 or more; None: this one is to be in none.
            key: members are in the order of this, then of their ranks in `team`.

        Raises:
            BadArgument, CollectiveMismatch, ResourceError: as `coll_broadcast`.
        """
        parent = self._team(team)
        check_integers(key, *(() if color is None else (color,)))
        if color is not None and not 0 <= color <= COLOR_MAX:
            raise BadArgument(f"{color} is no color: 0 to {COLOR_MAX} are, or None")
        if not -COLOR_MAX <= key <= COLOR_MAX:
            raise BadArgument(f"{key} is too large for a key")
        mine = CHOICE.pack(-1 if color is None else color, key)
        everyone = memoryview(bytearray(CHOICE.size * parent.size))
        call = Call(Kind.SPLIT, int(SYNCS), 0, CHOICE.size)
        op = self._start(parent, call, everyone, memoryview(mine))
        self._finish_operation(op)
        if color is None:
            return None
        choices = [(*CHOICE.unpack_from(everyone, CHOICE.size * r), r) for r in range(parent.size)]
        alike = sorted((key, rank) for other, key, rank in choices if other == color)
        nodes = [parent.nodes[rank] for _, rank in alike]
        return self._add_team(child_id(parent.id, op.number, color), nodes)

    def coll_team_free(self, team: Team) -> None:
        """Give a team back; all members call it, when nothing of it is under way.

        Raises:
            BadArgument: something is, or it is the team of all; as `coll_broadcast` else.
        """
        known = self._team(team)
        if not known.id:
            raise BadArgument("the team of all ranks is not freed")
        if known.active or known.barrier.entered:
            raise BadArgument(f"a collective of {known} is under way: sync it first")
        if known.broken is None:
            flags = CollFlag.IN_ALLSYNC | CollFlag.OUT_MYSYNC | CollFlag.LOCAL
            call = Call(Kind.FREE, int(flags), 0, 0)
            self._finish_operation(self._start(known, call, NOTHING, NOTHING))
        self._drop_team(known)

    # --- questions

    def coll_team_size(self, team: Team | AllRanks) -> int:
        """Its members. Raises: BadArgument: it is no team of this rank."""
        return self._team(team).size

    def coll_team_rank(self, team: Team | AllRanks) -> int:
        """This rank's rank in it."""
        return self._team(team).rank

    def coll_team_rank2node(self, team: Team | AllRanks, rank: int) -> int:
        """The rank of the job that a rank of the team is."""
        return self._team(team).rank2node(rank)

    def coll_team_node2rank(self, team: Team | AllRanks, node: int) -> int:
        """The rank in the team of a rank of the job."""
        return self._team(team).node2rank(node)

    # --- barriers

    def coll_barrier_notify(
        self, team: Team | AllRanks, name: int = 0, flags: int = ANONYMOUS
    ) -> None:
        """Enter a barrier of a team, as `barrier_notify`."""
        known = self._team(team)
        known.check_notify(flags)
        (word,) = words_of([name])
        known.given = (name, flags)
        known.barrier.enter(Knowledge(flags, 0 if flags else word))
        self._meeting.append(known)
        self._drive()

    def coll_barrier_wait(
        self, team: Team | AllRanks, name: int = 0, flags: int = ANONYMOUS
    ) -> None:
        """Wait until all members have entered it, as `barrier_wait`."""
        known = self._team(team)
        known.check_entered()
        self._wait_for(known.barrier.complete)
        self._leave_barrier(known, name, flags)

    def coll_barrier_try(
        self, team: Team | AllRanks, name: int = 0, flags: int = ANONYMOUS
    ) -> bool:
        """Whether all members have entered it; it is over then."""
        known = self._team(team)
        known.check_entered()
        self._advance()
        if not known.barrier.complete():
            return False
        self._leave_barrier(known, name, flags)
        return True

    def coll_barrier(self, team: Team | AllRanks, name: int = 0, flags: int = ANONYMOUS) -> None:
        """Enter a barrier of a team, and wait for it."""
        self.coll_barrier_notify(team, name, flags)
        self.coll_barrier_wait(team, name, flags)

    # --- below

    def _leave_barrier(self, team: Team, name: int, flags: int) -> None:
        self._meeting.remove(team)
        team.leave(name, flags)

    def _check_coll(self) -> None:
        self._check_free()
        if not self._coll_ready:
            raise BadArgument("call coll_init first: all ranks do")

    def _prepare_collectives(self) -> None:
        super()._prepare_collectives()
        self._add_handler(TEAM_CREATE, self._on_creation)

    def _on_creation(self, token: Token, payload: memoryview, words: Sequence[int]) -> None:
        self._creations[token.source, words[0]] = bytes(payload)

    def _begun_collectives(self) -> list[str]:
        lines = super()._begun_collectives()
        if self._creating:
            lines.append(f"the ranks {list(self._creating)} to make a team of them all")
        return lines


def _shown(list_: bytes) -> str:
    """The members in a message, in words."""
    nodes = [number for (number,) in Struct("<I").iter_unpack(list_[DIGEST:])]
    return f"of ranks {', '.join(map(str, nodes))}"
