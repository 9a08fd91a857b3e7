"""Which part of a trace is played: what a page has room for, and in words what is left out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ompy.trace.amounts import duration
from ompy.trace.calls import Call, joint_calls
from ompy.trace.drawing.sequence_diagram import thin_arrows
from ompy.trace.matching_queues import Waiting, matching_queues
from ompy.trace.message_events import Arrow, Message, messages
from ompy.trace.operations import Operation, Operations
from ompy.trace.playing.playback_operations import operation_arrows, steps_of
from ompy.trace.trace_files import JobTrace

MOST_STEPS: Final = 4000  # arbitrary: some minutes of playing, and a page of about 1 MB
MOST_LANES: Final = 16  # arbitrary: more do not fit a screen
_WORDS: Final = (
    (Message, "messages"),
    (Operation, "operations of GASNet"),
    (Call, "calls"),
    (Waiting, "posted receives"),
)


class Contents(NamedTuple):
    """What is played.

    Attributes:
        lanes: world ranks from the top.
        messages: in the order they began.
        operations: of GASNet, in the order they began.
        arrows: what went to and fro for them, each with the place of its message, or behind the
            messages of its operation.
        waiting: what waited in the queues of the lanes.
        calls: of the lanes.
        left_out: what a page does not show, a sentence each.
        known: all operations of the trace, with the names of handlers.
    """

    lanes: list[int]
    messages: list[Message]
    operations: list[Operation]
    arrows: list[tuple[int, Arrow]]
    waiting: list[Waiting]
    calls: list[Call]
    left_out: list[str]
    known: Operations


class _Item(NamedTuple):
    """Something to show, which takes so many steps from a time on."""

    time: int
    steps: int
    what: Message | Operation | Call | Waiting


def choose_contents(
    trace: JobTrace,
    chosen: Sequence[Message] | None,
    operations: Sequence[Operation] | None = None,
) -> Contents:
    """What there is room for.

    Args:
        trace: a traced job.
        chosen: the messages to show, with the receives that they matched and the calls made
            meanwhile; None for all there are, with the receives that matched nothing.
        operations: those of GASNet to show; where both are None, all.
    """
    left_out: list[str] = []
    whole = chosen is None and operations is None
    every = Operations(trace.events)
    known = _with_both_ends(messages(trace.events) if whole else chosen or (), left_out)
    used = _with_a_beginning(every.all if whole else operations or (), left_out)
    lanes = _choose_lanes(trace, None if whole else [*known, *used], left_out)
    calls = [part for call in joint_calls(trace.events) for part in call.parts]
    if not whole:
        calls = _calls_beside(calls, [*known, *used])
    waiting = list(matching_queues(trace.events, known))
    lost = [each for each in waiting if each.message is None and whole]
    kept = _within_room(_items(lanes, [*known, *used], calls, lost), left_out)
    shown = {id(each) for each in kept}
    found = [each for each in kept if isinstance(each, (Message, Operation))]
    found.sort(key=lambda each: isinstance(each, Operation))  # operations behind the messages
    return Contents(
        lanes,
        [each for each in found if isinstance(each, Message)],
        [each for each in found if isinstance(each, Operation)],
        _thinned(found, left_out),
        [each for each in waiting if id(each.message or each) in shown],
        [each for each in kept if isinstance(each, Call)],
        left_out,
        every,
    )


def _with_a_beginning(found: Sequence[Operation], left_out: list[str]) -> list[Operation]:
    """The operations whose beginning is in the trace."""
    known = [each for each in found if each.began is not None]
    if len(known) < len(found):
        left_out.append(f"{len(found) - len(known)} active messages whose sender is not traced")
    return known


def _ends(each: Message | Operation) -> tuple[int, int]:
    """The ranks that a message or operation is between."""
    if isinstance(each, Operation):
        return each.source, each.target
    return each.sender, each.receiver


def _arrows(each: Message | Operation) -> list[Arrow]:
    return operation_arrows(each) if isinstance(each, Operation) else each.arrows()


def _with_both_ends(found: Sequence[Message], left_out: list[str]) -> list[Message]:
    """The messages of which it is known who sent them."""
    known = [message for message in found if message.sender >= 0]
    if len(known) < len(found):
        left_out.append(f"{len(found) - len(known)} messages whose sender is not in the trace")
    return known


def _choose_lanes(
    trace: JobTrace, known: Sequence[Message | Operation] | None, left_out: list[str]
) -> list[int]:
    """The ranks that have a lane: all, or those that the messages are of."""
    ranks = sorted(trace.headers)
    if known is not None:
        used = {rank for each in known for rank in _ends(each)}
        ranks = [rank for rank in ranks if rank in used]
    if len(ranks) > MOST_LANES:
        left_out.append(
            f"{len(ranks) - MOST_LANES} of {len(ranks)} ranks, with their messages: there is room "
            f"for {MOST_LANES}; --rank A chooses those that talk with A"
        )
    return ranks[:MOST_LANES]


def _calls_beside(calls: Iterable[Call], known: Sequence[Message | Operation]) -> list[Call]:
    """The calls that ranks were in while messages were under way."""
    first = min((message.start_time for message in known), default=0)
    last = max((message.end_time for message in known), default=0)
    return [
        call
        for call in calls
        if call.began.time <= last and (call.ended is None or call.ended.time >= first)
    ]


def _items(
    lanes: Sequence[int],
    found: Iterable[Message | Operation],
    calls: Iterable[Call],
    lost: Iterable[Waiting],
) -> list[_Item]:
    """What the ranks with a lane have to show, the earliest first."""
    ranks = set(lanes)
    items = [
        _Item(each.start_time, _steps(each), each) for each in found if set(_ends(each)) <= ranks
    ]
    items += [_Item(call.began.time, 2, call) for call in calls if call.rank in ranks]
    items += [_Item(each.began.time, 1, each) for each in lost if each.rank in ranks]
    return sorted(items, key=lambda item: item.time)


def _steps(each: Message | Operation) -> int:
    """How many steps it takes, at most."""
    if isinstance(each, Operation):
        return steps_of(each)
    return 2 * len(thin_arrows(each.arrows())[0]) + 2


def _within_room(
    items: Sequence[_Item], left_out: list[str]
) -> list[Message | Operation | Call | Waiting]:
    """As many as there is room for."""
    room = itertools.accumulate(item.steps for item in items)
    count = sum(steps <= MOST_STEPS for steps in room)
    if count < len(items):
        told = []
        for kind, word in _WORDS:
            every = [isinstance(item.what, kind) for item in items]
            if any(every[count:]):
                told.append(f"{sum(every[count:])} of {sum(every)} {word}")
        left_out.append(
            f"what begins at {duration(items[count].time)} or later: {', '.join(told)}; there is "
            f"room for {MOST_STEPS} steps; --from and --count choose other messages"
        )
    return [item.what for item in items[:count]]


def _thinned(found: Iterable[Message | Operation], left_out: list[str]) -> list[tuple[int, Arrow]]:
    """The arrows of messages, but for the middle of large ones."""
    arrows, hidden = [], 0
    for place, each in enumerate(found):
        shown, others = thin_arrows(_arrows(each))
        arrows += [(place, arrow) for arrow in shown]
        hidden += sum(count for _, count, _ in others)
    if hidden:
        left_out.append(f"{hidden} fragments, puts and gets in the middle of large messages")
    return arrows
