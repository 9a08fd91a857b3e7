"""Whether ranks can ever go on, by what all of them say of themselves (`standing.py`). Pure.

A *node* is a thread that sleeps in a call, or a collective call under way beside it. It may go on
if one of its needs may be met, and that if the ranks it needs may act:

| need | rank p, whom it needs, may act if |
|---|---|
| any | nothing is known of p, or p may go on by itself, or one of its threads may go on |
| receive, probe, collective | so; or not all that p has sent has come |
| send | so; or the message is not among those that p has and no receive has taken |
| collective | it has not begun, or started, it, and so; is in it, and may go on there; is over it |
| post, complete (of a window) | as for receive |
| port | so: of all processes of the job that live, where nobody else can come |
| lock (of a window) | so; or does not say that it has it, nor the owner that it gets it first |

What may go on is the least set closed under these rules; the other nodes never will, whatever any
rank does: who would have to act first is among them. This holds for a state in which all of them
sleep at one moment; `proving.py` asks twice, so that there was one. A set that waits only for
members in the same call is none: no program can be at fault for it.

Where ranks may die (`mpi_ft_enable`) any member of a communicator may revoke it, which ends all
that waits there: such a need is met while one of its `revokers` may act, or has revoked it.

Who has a lock says so itself. It slept between its two answers, so it had the lock all the time,
whatever words about that lock are under way; who wants it says nothing of who has it.

Source: knots of the wait-for graph in the AND-OR model (Knapp 1987); MUST's of MPI (Hilbrich et
al. 2009), which knows neither threads nor what is under way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ompy.frameworks.needs import COLLECTIVE, LOCK, PORT, SEND

Need = Mapping[str, Any]
Said = Mapping[str, Any]
THREAD: Final = "thread"
TASK: Final = "task"


class Node(NamedTuple):
    """What waits.

    Attributes:
        rank: of it.
        kind: THREAD or TASK.
        place: of it among those of its rank.
    """

    rank: int
    kind: str
    place: int


class Waits(NamedTuple):
    """A rank that never goes on.

    Attributes:
        rank: which.
        place: its first thread's line of the program: file, line, function, text.
        needs: of which one would have sufficed.
        ranks: whom it waits for.
    """

    rank: int
    place: Mapping[str, Any]
    needs: tuple[Need, ...]
    ranks: tuple[int, ...]


class Deadlock(NamedTuple):
    """Ranks that never go on.

    Attributes:
        waits: each of them, lowest first.
        cycle: ranks each of which waits for the next, the last for the first; may be of one.
    """

    waits: tuple[Waits, ...]
    cycle: tuple[int, ...]

    @property
    def ranks(self) -> frozenset[int]:
        """All of them."""
        return frozenset(each.rank for each in self.waits)


def find_deadlock(
    said: Mapping[int, Said],
    *,
    suspect: bool = False,
    everybody: Collection[int] | None = None,
) -> Deadlock | None:
    """The ranks that never go on, None if there are none.

    Args:
        said: by rank, of those that sleep.
        suspect: what they have said of messages is of different moments: leave these out, which
            finds more than there is.
        everybody: the processes that may ever come to a port; None if that is not known.
    """
    state = _State(said, suspect, everybody)
    state.find_free_nodes()
    found = [state.waits(rank) for rank in sorted(said) if not state.rank_acts(rank)]
    waits = tuple(found)
    return Deadlock(waits, _cycle({each.rank: each.ranks for each in waits})) if waits else None


class _State:
    """Which nodes may go on."""

    def __init__(
        self, said: Mapping[int, Said], suspect: bool, everybody: Collection[int] | None
    ) -> None:
        self._suspect = suspect
        self._everybody = everybody
        self._every = said
        self._said = {rank: each for rank, each in said.items() if not each["live"]}
        self._needs: dict[Node, list[Need] | None] = {}
        for rank, each in self._said.items():
            for place, wait in enumerate(each["waits"]):
                self._needs[Node(rank, THREAD, place)] = self._known(wait["needs"])
            for place, need in enumerate(each["tasks"]):
                self._needs[Node(rank, TASK, place)] = [need]
        self._may: set[Node] = set()

    def _known(self, needs: list[Need] | None) -> list[Need] | None:
        """Needs with the ranks that they are of; None if that is not known of one."""
        if needs is None or not any(need["what"] == PORT for need in needs):
            return needs
        if self._everybody is None:
            return None
        whole = {"ranks": sorted(self._everybody), "every": False}
        return [{**need, **whole} if need["what"] == PORT else need for need in needs]

    def _spread(self) -> None:
        """Find all that may go on, by what is known to."""
        changed = True
        while changed:
            changed = False
            for node, needs in self._needs.items():
                if node in self._may:
                    continue
                if needs is None or any(self._met(node.rank, need) for need in needs):
                    self._may.add(node)
                    changed = True

    def _met(self, rank: int, need: Need) -> bool:
        """Whether a need may be met."""
        if any(self._revokes(need, other) for other in need.get("revokers", ())):
            return True
        each = (self._acts(rank, need, other) for other in need["ranks"])
        return all(each) if need["every"] else any(each)

    def _revokes(self, need: Need, other: int) -> bool:
        """Whether a rank may revoke a need's communicator, or has."""
        return self.rank_acts(other) or need["comm"] in self._said[other].get("revoked", ())

    def rank_acts(self, rank: int) -> bool:
        """Whether one of a rank's threads may go on, as far as is known."""
        return rank not in self._said or any(node in self._may for node in self._threads(rank))

    def _threads(self, rank: int) -> Iterator[Node]:
        for place in range(len(self._said[rank]["waits"])):
            yield Node(rank, THREAD, place)

    def _acts(self, rank: int, need: Need, other: int) -> bool:
        """Whether another rank may do what is needed of it, or has."""
        if other not in self._said:
            return True
        if need["what"] == COLLECTIVE:
            return self._takes_part(rank, need, other)
        if need["what"] == SEND:
            return not self._is_unmatched(rank, need, other) or self.rank_acts(other)
        if need["what"] == PORT:
            return self.rank_acts(other)
        if need["what"] == LOCK:
            kept = keeps_lock(self._every, rank, need, other) or self._may_be_first(need, other)
            return not kept or self.rank_acts(other)
        return self._is_under_way(rank, need, other) or self.rank_acts(other)

    def _may_be_first(self, need: Need, other: int) -> bool:
        """Whether another that waits for a lock may have asked before: its owner will tell."""
        return self._suspect and any(
            each["what"] == LOCK
            and (each["comm"], each["target"]) == (need["comm"], need["target"])
            and (each["alone"] or need["alone"])
            for node, needs in self._needs.items()
            if node.rank == other
            for each in needs or ()
        )

    def _is_under_way(self, rank: int, need: Need, other: int) -> bool:
        """Whether something that the other has sent has not come, or that is not known."""
        if self._suspect:
            return False
        sent = _count(self._said[other]["sent"], need["comm"], rank)
        return sent is None or sent != _count(self._said[rank]["received"], need["comm"], other)

    def _is_unmatched(self, rank: int, need: Need, other: int) -> bool:
        """Whether the message is there, and no receive has taken it."""
        key = [need["comm"], rank, need["sequence"], need["tag"], need["size"]]
        return self._suspect or key in self._said[other]["unmatched"]

    def _takes_part(self, rank: int, need: Need, other: int) -> bool:
        """Whether a member may do its part in a collective call."""
        begun = has_begun(self._said[other], need)
        if begun is None:
            return True
        if not begun:
            return self.rank_acts(other)
        inside = list(self._inside(need, other))
        goes_on = not inside or any(node in self._may for node in inside)
        return goes_on or self._is_under_way(rank, need, other)

    def _inside(self, need: Need, other: int) -> Iterator[Node]:
        """What of a rank is in that call."""
        for node, needs in self._needs.items():
            if node.rank == other and any(_is_of_call(each, need) for each in needs or ()):
                yield node

    def find_free_nodes(self) -> None:
        """Find all that may go on; so does what waits, in the end, only within one call."""
        while True:
            self._spread()
            lost = [node for node in self._needs if node not in self._may]
            caused = self._caused(lost)
            if len(caused) == len(lost):
                return
            self._may.update(node for node in lost if node not in caused)

    def _caused(self, lost: Iterable[Node]) -> set[Node]:
        """Those of them that wait for what a program has not called, or for such ones."""
        caused = {node for node in lost if any(self._is_absence(*way) for way in self._ways(node))}
        changed = True
        while changed:
            more = {
                node
                for node in lost
                for need, other in self._ways(node)
                if node not in caused and caused.intersection(self._inside(need, other))
            }
            caused |= more
            changed = bool(more)
        return caused

    def _ways(self, node: Node) -> Iterator[tuple[Need, int]]:
        """What holds a node up: a need, a rank that cannot act."""
        for need in self._needs[node] or ():
            for other in need["ranks"]:
                if not self._acts(node.rank, need, other):
                    yield need, other

    def _is_absence(self, need: Need, other: int) -> bool:
        """Whether the other's program would have to call something."""
        if need["what"] != COLLECTIVE:
            return True
        return has_begun(self._said[other], need) is False

    def waits(self, rank: int) -> Waits:
        """What a rank waits for that never goes on."""
        said = self._said[rank]["waits"]
        needs = tuple(need for wait in said for need in wait["needs"])
        ways = (way for node in self._threads(rank) for way in self._ways(node))
        blocking = dict.fromkeys(who for way in ways for who in self._at_fault(*way))
        return Waits(rank, said[0]["at"], needs, tuple(blocking))

    def _at_fault(self, need: Need, other: int) -> list[int]:
        """Whom a rank waits for that needs another: of a collective call all who are missing.

        Which member it hears from next is the algorithm's, and nothing to who reads of it.
        """
        if need["what"] != COLLECTIVE:
            return [other]
        missing = [
            rank
            for rank, said in self._said.items()
            if has_begun(said, need) is False and not self.rank_acts(rank)
        ]
        return missing or [other]


def has_begun(said: Said, need: Need) -> bool | None:
    """Whether a rank has begun a collective call, and started it so often; None: it is not known.

    Args:
        said: what the rank has said.
        need: of another member of that call.
    """
    comm, wanted, start = str(need["comm"]), need["number"], need.get("start", 0)
    begun = said["begun"].get(comm)
    if begun is None:
        return None
    if begun < wanted or not start:
        return bool(begun >= wanted)
    starts = said.get("started", {}).get(comm, ())
    return next((count >= start for number, count in starts if number == wanted), None)


def keeps_lock(said: Mapping[int, Said], rank: int, need: Need, other: int) -> bool:
    """Whether a lock cannot be had before another rank has given it back."""
    return bool(holding(said.get(other, {}), need)) or other in asked_before(said, rank, need)


def asked_before(said: Mapping[int, Said], rank: int, need: Need) -> list[int]:
    """Who is to get a lock before a rank, in a way that excludes it; as the lock's owner says."""
    for comm, queue in said.get(need["target"], {}).get("queued", ()):
        asked = [each for each, _ in queue]
        if comm == need["comm"] and rank in asked:
            before = queue[: asked.index(rank)]
            return [each for each, alone in before if alone or need["alone"]]
    return []


def holding(said: Said, need: Need) -> list[Any]:
    """What it says of that: the place it has it from; nothing if it does not have it."""
    key = need["comm"], need["target"]
    return [
        at
        for comm, target, alone, at in said.get("held", ())
        if (comm, target) == key and (alone or need["alone"])
    ]


def _count(counts: Mapping[str, Any], comm: int, rank: int) -> int | None:
    """Messages to or from a rank; None where nothing is known of the communicator."""
    row = counts.get(str(comm))
    if row is None:
        return None
    return next((count for other, count in row if other == rank), 0)


def _is_of_call(need: Need, wanted: Need) -> bool:
    """Whether a need is of a collective call; those who wait at a port are in one."""
    parts = ("comm", "number", "start")
    inside = need["what"] in {COLLECTIVE, PORT}
    return inside and all(need.get(part, 0) == wanted.get(part, 0) for part in parts)


def _cycle(edges: Mapping[int, Iterable[int]]) -> tuple[int, ...]:
    """A shortest circle of who waits for whom; each waits for somebody who never goes on."""
    best: tuple[int, ...] = ()
    for start in edges:
        paths: list[tuple[int, ...]] = [(start,)]
        seen: set[int] = set()
        while paths and (not best or len(paths[0]) < len(best)):
            path = paths.pop(0)
            for other in edges.get(path[-1], ()):
                if other == start:
                    best = path
                    paths = []
                    break
                if other in edges and other not in seen:
                    seen.add(other)
                    paths.append((*path, other))
    return best
