"""What a collective call was made of, as lines of text: rounds of messages, or steps in memory.

A *round* is what may travel at a time: a message is in the round after the last one of those that
its sender has sent or got in earlier steps of its schedule.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ompy.trace.amounts import byte_count
from ompy.trace.calls import JointCall, fields_of
from ompy.trace.message_events import Message
from ompy.trace.sink import Event

WIDTH: Final = 96  # columns; arbitrary: fits most terminals
MOST_PAIRS: Final = 64  # pairs of ranks of a round that are shown; arbitrary: some lines
RESULT: Final = -1  # who owns the slot of a result
THE_RESULT: Final = "the result"
THEIR_OWN: Final = "what they show themselves"
ITS_OWN: Final = "what it shows itself"
UNDIVIDED: Final = 0  # number of the fragment, where a call's data are in none
_DOES: Final = {
    "SHOW": ("shows", "show"),
    "NO_ROOM": ("has no room for", "have no room for"),
    "RESULT": ("puts the result of", "put the result of"),
    "READ": ("reads", "read"),
    "DONE": ("is done with", "are done with"),
}


class Order:
    """Which of two events of a rank came first: the clock may not say it."""

    def __init__(self, events: Iterable[Event]) -> None:
        """Keep the order of the events of a trace."""
        self._places = {id(event): place for place, event in enumerate(events)}

    def __getitem__(self, event: Event) -> int:
        return self._places[id(event)]


def rounds(call: JointCall, messages: Iterable[Message], order: Order) -> list[list[Message]]:
    """The messages of a call by round."""
    steps: dict[tuple[int, int, int], list[int]] = {}
    for part in call.parts:
        for event in part.steps:
            fields = fields_of(event)
            key = (part.rank, fields["context"], fields["tag"])
            steps.setdefault(key, []).append(order[event])

    def step(rank: int, message: Message, event: Event) -> int:
        began = steps.get((rank, message.context, message.tag), [])
        return sum(place < order[event] for place in began)

    found: list[list[Message]] = []
    latest: dict[int, dict[int, int]] = {}  # by rank and step, the round of its last message
    sent = [message for message in messages if message.sends]
    for message in sorted(sent, key=lambda message: order[message.sends[0]]):
        at = step(message.sender, message, message.sends[0])
        before = latest.setdefault(message.sender, {})
        number = 1 + max((each for place, each in before.items() if place < at), default=0)
        before[at] = max(before.get(at, 0), number)
        if message.receives:
            into = latest.setdefault(message.receiver, {})
            got = step(message.receiver, message, message.receives[-1])
            into[got] = max(into.get(got, 0), number)
        while len(found) < number:
            found.append([])
        found[number - 1].append(message)
    return found


def round_lines(call: JointCall, messages: Iterable[Message], order: Order) -> list[str]:
    """Who sends how much to whom, round by round."""
    lines = []
    for number, part in enumerate(rounds(call, messages, order), 1):
        head = f"  round {number:<3}"
        for size in dict.fromkeys(message.size for message in part):
            pairs = _pairs([message for message in part if message.size == size])
            more = f"   and {len(pairs) - MOST_PAIRS} more" if len(pairs) > MOST_PAIRS else ""
            # the blanks within a pair must not break
            text = "   ".join(pair.replace(" ", "\0") for pair in pairs[:MOST_PAIRS]) + more
            first = f"{head}{byte_count(size):>10}   "
            wrapped = textwrap.fill(
                text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first)
            )
            lines += wrapped.replace("\0", " ").splitlines()
            head = " " * len(head)
    return lines


def _pairs(messages: Sequence[Message]) -> list[str]:
    """Ranks that send, with those they send to; both ways in one."""
    ways = sorted({(message.sender, message.receiver) for message in messages})
    found = []
    for sender, receiver in ways:
        if (receiver, sender) not in ways:
            found.append(f"{sender} -> {receiver}")
        elif sender < receiver:
            found.append(f"{sender} <-> {receiver}")
    return found


class _Done(NamedTuple):
    """Something that a member did in shared memory.

    Attributes:
        place: in the order of all events.
        rank: whose.
        name: of the event.
        number: of the fragment, counted from the call's first; `UNDIVIDED` without fragments.
        size: bytes.
        owner: whose slot was read; -1 for the result's.
    """

    place: int
    rank: int
    name: str
    number: int
    size: int
    owner: int

    def text(self) -> str:
        """What it is that was shown, read or left."""
        if self.name == "READ":
            whose = f"what rank {self.owner} shows"
            if self.owner in (RESULT, self.rank):
                whose = THE_RESULT if self.owner == RESULT else THEIR_OWN
            return f"{byte_count(self.size)} of {whose}"
        if self.number == UNDIVIDED:
            return self._undivided()
        size = f" of {byte_count(self.size)}" if self.size and self.name == "SHOW" else ""
        return f"fragment {self.number}{size}"

    def _undivided(self) -> str:
        """The same of a call whose data are in one piece."""
        if self.name == "DONE":
            return "the memory"
        return byte_count(self.size) if self.size else "the call, without data"


def _done(events: Sequence[Event], order: Order) -> list[_Done]:
    """What the members did; what one does in many pieces is one thing."""
    shown = [fields_of(event)["number"] for event in events if event.name == "SHOW"]
    first, last = min(shown, default=0), max(shown, default=0)
    found: dict[int, list[_Done]] = {}
    for event in events:
        fields = fields_of(event)
        number = fields["number"]
        if number != UNDIVIDED:
            number = min(max(number, first), last) - first + 1
        own = found.setdefault(event.rank, [])
        size, owner = fields.get("bytes", 0), fields.get("owner", RESULT)
        done = _Done(order[event], event.rank, event.name, number, size, owner)
        before = own[-1] if own else None
        if before is not None and before[2:4] == done[2:4] and before.owner == owner:
            if event.name == "READ":
                own[-1] = before._replace(size=before.size + size)
            if event.name in ("READ", "DONE"):
                continue
        own.append(done)
    return sorted(done for own in found.values() for done in own)


def memory_lines(call: JointCall, order: Order) -> list[str]:
    """What members did in shared memory, in the order in which the first of them did it.

    The end of the last one counts of what all end.
    """
    events = sorted((e for part in call.parts for e in part.memory), key=lambda e: order[e])
    found: dict[tuple[str, str, int], list[int]] = {}
    places: dict[tuple[str, str, int], int] = {}
    seen: dict[tuple[int, str, str], int] = {}
    for done in _done(events, order):
        what = done.text()
        # the same thing once more is another step
        turn = seen[done.rank, done.name, what] = seen.get((done.rank, done.name, what), 0) + 1
        step = done.name, what, turn
        found.setdefault(step, []).append(done.rank)
        if done.name == "DONE" or step not in places:
            places[step] = done.place
    every = len(call.parts)
    lines = []
    for number, step in enumerate(sorted(found, key=places.__getitem__), 1):
        name, what, _ = step
        several = len(found[step]) > 1
        text = f"{ranks_text(found[step], every)} {_DOES[name][several]} {what}"
        text = text if several else text.replace(THEIR_OWN, ITS_OWN)
        lines += textwrap.wrap(
            text, WIDTH, initial_indent=f"  {number:>3}. ", subsequent_indent=" " * 7
        )
    return lines


def ranks_text(ranks: Iterable[int], every: int) -> str:
    """Ranks in few words: `ranks 0-3, 7`; all of a call are `all`."""
    own = sorted(set(ranks))
    if len(own) == every and every > 1:
        return "all"
    runs: list[list[int]] = []
    for rank in own:
        if runs and runs[-1][-1] == rank - 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"rank{'s' if len(own) > 1 else ''} {', '.join(texts)}"


def step_lines(call: JointCall, messages: Sequence[Message], events: Iterable[Event]) -> list[str]:
    """All that a call was made of.

    Args:
        call: it.
        messages: its.
        events: of the trace.
    """
    order = Order(events)
    memory, sent = memory_lines(call, order), round_lines(call, messages, order)
    lines = []
    if memory:
        lines += ["in shared memory", *memory]
    if sent:
        count = len(messages)
        lines += [f"as {count} message{'s' if count > 1 else ''}", *sent]
    return lines
