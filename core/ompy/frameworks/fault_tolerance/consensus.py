"""Agreement of processes on one value while any of them may die: the machine, without I/O.

It is the consensus of synod protocols (propose to all, decide when all have accepted) with a
failure detector that is right: the agents know of a death for sure, and in the end everybody hears
of it. So nobody counts majorities, and one survivor is enough.

A *round* has a leader, the lowest member that is there, and its place is the round's number:

    VOTE     everybody to the leader: what it says, and what it accepted in an earlier round
    PROPOSE  the leader, when all that are there have voted: what was accepted in the latest
             round if anybody has accepted anything, else what each of them says
    ACCEPT   everybody to the leader, but nothing of an earlier round than it has voted in
    DECIDE   the leader, when all that are there have accepted

When a leader dies the next one begins a round: it asks (ASK) those that have not voted, as some may
be done. **Whoever decides knows that all that are there have accepted the value**, so every later
round proposes the same one. That has two consequences. Who decided and died has decided as the
survivors do. And who has decided may forget: to whoever asks it says OVER, the value is what you
have accepted.

    IDLE -> VOTED -> ACCEPTED -> DECIDED        a later round: ACCEPTED -> ACCEPTED, VOTED -> VOTED

A member that leaves in order counts as one that died. Who has not begun yet is waited for.

| number | value | source |
|---|---|---|
| messages of n members without a death | 4 (n - 1) | one of each kind |
| steps until all know it | 4 messages | the same |
| more for each leader that dies | at most 5 (n - 1) | the same, and a question each |

`tests/unit/frameworks/test_consensus.py` has every death at every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

# what the members have said, by member: who is not in it was gone
Value = tuple[tuple[int, bytes], ...]


class Say(IntEnum):
    """What members say to each other; the numbers are on the wire."""

    VOTE = 1
    PROPOSE = 2
    ACCEPT = 3
    DECIDE = 4
    ASK = 5
    OVER = 6


class Standing(IntEnum):
    """How far a member has come."""

    IDLE = 0
    VOTED = 1
    ACCEPTED = 2
    DECIDED = 3


class Note(NamedTuple):
    """A message of the protocol.

    Attributes:
        peer: whom it is to, or from.
        say: what it is.
        round: it belongs to.
        said: VOTE: what the member says.
        accepted: VOTE: the round in which it has accepted `value`, -1 if it has not.
        value: VOTE, PROPOSE, DECIDE: of all.
    """

    peer: int
    say: Say
    round: int
    said: bytes = b""
    accepted: int = -1
    value: Value = ()


class Consensus:
    """One member's part in one agreement.

    Attributes:
        standing: how far it has come.
        value: what was agreed on, once it has decided.
    """

    def __init__(self, me: int, members: Sequence[int], gone: Iterable[int] = ()) -> None:
        """It has not begun.

        Args:
            me: this member.
            members: all, in the same order at each of them.
            gone: those known to be there no longer.
        """
        self.standing = Standing.IDLE
        self.value: Value = ()
        self._me = me
        self._members = tuple(members)
        self._gone = set(gone) & set(members)
        self._said = b""
        self._round = -1  # it has voted in; rounds before it are over here
        self._accepted = -1  # the round of what it has accepted
        self._votes: dict[int, Note] = {}  # of those for this member's own round
        self._proposed = False
        self._accepts: set[int] = set()

    @property
    def decided(self) -> bool:
        """Whether `value` is what was agreed on."""
        return self.standing is Standing.DECIDED

    def begin_saying(self, said: bytes) -> list[Note]:
        """This member takes part, and says something.

        Returns:
            What to send, as from all methods.
        """
        assert self.standing is Standing.IDLE, "it begins once"
        self._said = said
        self.standing = Standing.VOTED
        return self._enter_round()

    def lose(self, member: int) -> list[Note]:
        """A member has died or left. It may be told more than once."""
        if member not in self._members or member in self._gone:
            return []
        self._gone.add(member)
        return self._go_on()

    def hear(self, note: Note) -> list[Note]:
        """A member says something."""
        if self.decided:
            return answer_when_over(note)
        match note.say:
            case Say.VOTE:
                self._votes[note.peer] = note
            case Say.PROPOSE if note.round >= self._round:
                return self._accept(note)
            case Say.ACCEPT if self._proposed:
                self._accepts.add(note.peer)
            case Say.DECIDE:
                return self._decide(note.value)
            case Say.OVER:
                assert self._accepted >= 0, "nobody decides what this member has not accepted"
                return self._decide(self.value)
            case Say.ASK:  # of a leader: those before it are gone
                self._gone.update(self._members[: note.round])
        return self._go_on()

    def _go_on(self) -> list[Note]:
        """Somebody is gone: there may be a new leader, or nobody that a leader waits for."""
        if self.standing in {Standing.IDLE, Standing.DECIDED}:
            return []
        return self._enter_round() or self._lead()

    def _there(self) -> list[int]:
        return [member for member in self._members if member not in self._gone]

    def _enter_round(self) -> list[Note]:
        """Vote in the round of the lowest member that is there, if that is a new one."""
        leader = self._there()[0]
        number = self._members.index(leader)
        if number == self._round:
            return []
        self._round = number
        vote = Note(leader, Say.VOTE, number, self._said, self._accepted, self.value)
        if leader != self._me:
            return [vote]
        self._votes[leader] = vote
        missing = [m for m in self._there() if m not in self._votes] if number else []
        return [*(Note(member, Say.ASK, number) for member in missing), *self._lead()]

    def _lead(self) -> list[Note]:
        """What a leader can do now: propose when all have voted, decide when all have accepted."""
        there = self._there()
        if there[0] != self._me or self.standing is Standing.IDLE:
            return []
        if not self._proposed:
            if not all(member in self._votes for member in there):
                return []
            return self._propose()
        if all(member in self._accepts for member in there):
            return self._decide(self.value)
        return []

    def _propose(self) -> list[Note]:
        there = self._there()
        latest = max((self._votes[m] for m in there), key=lambda vote: vote.accepted)
        if latest.accepted >= 0:
            value = latest.value
        else:
            value = tuple((member, self._votes[member].said) for member in there)
        self._proposed = True
        self._accepted, self.value = self._round, value
        self.standing = Standing.ACCEPTED
        self._accepts.add(self._me)
        out = [Note(m, Say.PROPOSE, self._round, value=value) for m in there if m != self._me]
        return [*out, *self._lead()]

    def _accept(self, note: Note) -> list[Note]:
        self._round = note.round
        self._accepted, self.value = note.round, note.value
        self.standing = Standing.ACCEPTED
        return [Note(note.peer, Say.ACCEPT, note.round)]

    def _decide(self, value: Value) -> list[Note]:
        """It is agreed. A leader tells the others; who is to be one, those that voted for it."""
        self.value, self.standing = value, Standing.DECIDED
        there = self._there()
        told = there if there[0] == self._me else [m for m in there if m in self._votes]
        others = [member for member in told if member != self._me]
        return [Note(member, Say.DECIDE, self._round, value=value) for member in others]


def answer_when_over(note: Note) -> list[Note]:
    """What one that has decided, and may have forgotten it, says to a member that has not."""
    match note.say:
        case Say.VOTE | Say.ASK:
            return [Note(note.peer, Say.OVER, note.round)]
        case Say.PROPOSE:
            return [Note(note.peer, Say.ACCEPT, note.round)]
    return []
