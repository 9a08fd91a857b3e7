"""What each rank of an explored world begins, in its order; and beside it, what it began before.

A schedule is of a program. Where another one, or the same with a change, does something else, the
choices of the schedule are not those that it is asked about any more: so the first such call is
named, with both lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ompy.runtime.exploration.events import Diverged
from ompy.trace.tag_names import tag_text

SEND: Final = "send"
RECEIVE: Final = "receive"
LOOK: Final = "look"
WAIT: Final = "wait"
TEST: Final = "test"
_WORDS: Final = {
    SEND: "a message to",
    RECEIVE: "a receive from",
    LOOK: "a probe for a message from",
    WAIT: "a wait for one of several",
    TEST: "a test",
}


class Call(NamedTuple):
    """Something that a rank has begun.

    Attributes:
        what: SEND, RECEIVE, LOOK, WAIT or TEST.
        peer: rank; of the job for a message, of the communicator else; below 0 for any, or none.
        tag: of the message.
        site: where in the program.
    """

    what: str
    peer: int
    tag: int
    site: str

    def said(self) -> str:
        """It, in words."""
        words = _WORDS[self.what]
        if self.what in (WAIT, TEST):
            return words
        who = "any rank" if self.peer < 0 else f"rank {self.peer}"
        return f"{words} {who} with {tag_text(self.tag)}"


class CallJournal:
    """Writes them down."""

    def __init__(self, size: int) -> None:
        """Nothing has been begun by any of so many ranks."""
        self.calls: list[list[Call]] = [[] for _ in range(size)]

    def add_call(self, rank: int, what: str, peer: int, tag: int, site: str) -> None:
        """A rank begins something."""
        while rank >= len(self.calls):
            self.calls.append([])
        self.calls[rank].append(Call(what, peer, tag, site))

    def end_rank(self, rank: int) -> None:
        """A rank has come to its end."""


class ComparedCalls(CallJournal):
    """Compares them with those of a world that was run before."""

    def __init__(self, then: Sequence[Sequence[Call]], *, lines: bool) -> None:
        """Nothing has been begun.

        Args:
            then: what each rank began, as far as it came.
            lines: the lines have to be the same, too: the program is.
        """
        super().__init__(len(then))
        self._then = then
        self._lines = lines

    def add_call(self, rank: int, what: str, peer: int, tag: int, site: str) -> None:
        """A rank begins something.

        Raises:
            Diverged: it began something else.
        """
        super().add_call(rank, what, peer, tag, site)
        number = len(self.calls[rank])
        if rank >= len(self._then) or number > len(self._then[rank]):
            return  # so far it had not come
        now, then = self.calls[rank][-1], self._then[rank][number - 1]
        if now[:3] != then[:3]:
            self._differ(rank, number, "the calls differ", now.said(), now.site)
        if self._lines and now.site != then.site:
            self._differ(rank, number, "the lines differ", now.said(), now.site)

    def end_rank(self, rank: int) -> None:
        """A rank has come to its end.

        Raises:
            Diverged: it went on.
        """
        number = len(self.calls[rank]) + 1 if rank < len(self.calls) else 1
        if rank < len(self._then) and number <= len(self._then[rank]):
            self._differ(rank, number, "it has come to its end", "nothing more", "")

    def _differ(self, rank: int, number: int, why: str, said: str, site: str) -> None:
        then = self._then[rank][number - 1]
        raise Diverged(
            f"rank {rank} does not do what it did, at its call {number}: {why}\n"
            f"  now:             {_shown(site)}{said}\n"
            f"  in the schedule: {_shown(then.site)}{then.said()}"
        )


def _shown(site: str) -> str:
    """A line of the program, from the working directory on, if it is below that."""
    return f"{site.removeprefix(os.getcwd() + os.sep)}: " if site else ""


def to_json(calls: Iterable[Iterable[Call]]) -> dict[str, Any]:
    """Calls of all ranks for a file: lines by number, as many calls have the same one."""
    numbers: dict[str, int] = {}
    ranks = [
        [[one.what, one.peer, one.tag, numbers.setdefault(one.site, len(numbers))] for one in rank]
        for rank in calls
    ]
    return {"lines": list(numbers), "ranks": ranks}


def from_json(found: Mapping[str, Any]) -> list[list[Call]]:
    """The calls of a file.

    Raises:
        KeyError, TypeError, ValueError, IndexError: they are none.
    """
    lines = [str(line) for line in found["lines"]]
    ranks = [
        [Call(str(what), int(peer), int(tag), lines[line]) for what, peer, tag, line in rank]
        for rank in found["ranks"]
    ]
    if not all(one.what in _WORDS for rank in ranks for one in rank):
        raise ValueError("a call is of a kind that is not known")
    return ranks
