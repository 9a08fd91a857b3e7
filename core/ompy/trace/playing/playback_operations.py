"""GASNet's operations as something that can be played: arrows, bars of handlers, words.

An active message is an arrow from its sending to the beginning of its handler, and the handler is a
bar. A put or get is an arrow for each post, from its beginning to its completion, which the rank
sees that began it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ompy.trace.amounts import byte_count
from ompy.trace.calls import fields_of
from ompy.trace.drawing.sequence_diagram import thin_arrows
from ompy.trace.message_events import Arrow, Kind
from ompy.trace.operations import Operation, Operations, is_of_program
from ompy.trace.sink import Event

REQUEST: Final = "request"
REPLY: Final = "reply"
# families of operations, and words
OPERATION_FAMILIES: Final = (
    (REQUEST, "an active message, for which the other rank runs a handler"),
    (REPLY, "the active message that a handler answers with"),
    ("put", "bytes that a rank writes into another rank's segment"),
    ("get", "bytes that a rank reads from another rank's segment"),
    ("atomic", "a number in another rank's segment, changed in one go"),
)
# what waits in a rank: its name in the page, and the title
OPERATION_QUEUES: Final = (
    ("handlers", "messages for handlers"),
    ("transfers", "own puts and gets"),
)


class Span(NamedTuple):
    """What a rank did for a while: it ran a handler, or took part in a collective.

    Attributes:
        rank: whose.
        name: of the handler or the collective.
        began, ended: its events; it has not ended where that is None.
        of: what it is about, in words.
    """

    rank: int
    name: str
    began: Event
    ended: Event | None
    of: str


class Outstanding(NamedTuple):
    """What waits in a rank.

    Attributes:
        rank: whose.
        queue: one of the names in `OPERATION_QUEUES`.
        began, ended: from when to when; for ever where `ended` is None.
        text: what it is.
        internal: GASNet itself has asked for it.
    """

    rank: int
    queue: str
    began: Event
    ended: Event | None
    text: str
    internal: bool


def family_of_operation(operation: Operation) -> str:
    """The family that a page shows it as."""
    if operation.is_message:
        return REPLY if operation.name.startswith("AMReply") else REQUEST
    return operation.name


def operation_arrows(operation: Operation) -> list[Arrow]:
    """All that went to and fro for an operation; nothing for a part of a collective."""
    began = operation.began
    if began is None or operation.is_collective:
        return []
    source, target = operation.source, operation.target
    if operation.is_message:
        kind = Kind.DATA if operation.size else Kind.CONTROL
        arrived = operation.handled
        if source == target and arrived is None:  # of the own rank: it has no other side
            arrived = began
        found = [Arrow(operation.name, kind, began, arrived, source, target, operation.size)]
        if operation.hidden is not None and operation.credited is not None:
            back = operation.hidden, operation.credited
            found.append(Arrow("credit", Kind.CONTROL, *back, target, source, 0))
        return found
    ways = (target, source) if operation.name == "get" else (source, target)
    if not operation.posts:  # copied by the rank itself
        return [Arrow(operation.name, Kind.RDMA, began, began, *ways, operation.size)]
    return [
        Arrow(post.way.partition(",")[0], Kind.RDMA, post.began, post.done, *ways, post.size)
        for post in operation.posts
    ]


def steps_of(operation: Operation) -> int:
    """How many steps it takes, at most."""
    return 2 * len(thin_arrows(operation_arrows(operation))[0]) + 4


def operation_values(operation: Operation, known: Operations) -> dict[str, Any]:
    """What a page is told of an operation, but for its lanes."""
    size, family = byte_count(operation.size), family_of_operation(operation)
    told = {"size": size, "family": family, "internal": not is_of_program(operation)}
    label = f"{family} {size}" if operation.size else family
    if not operation.is_message:
        return {**told, "tag": "", "protocol": operation.way, "label": label}
    name = known.handler_name(operation)
    protocol = f"{operation.name} by {operation.way}"
    if operation.credits >= 0:
        protocol += f", {operation.credits} credits left"
    return {**told, "tag": f"handler {name}", "protocol": protocol, "label": f"{name}: {label}"}


def operation_notes(operation: Operation, known: Operations) -> Iterator[tuple[Event, str]]:
    """What is said of its events beside that arrows begin and end there."""
    if operation.is_message:
        name = known.handler_name(operation)
        if operation.stalled is not None:
            yield operation.stalled, f"has no credit for rank {operation.target}, and polls"
        if operation.handled is not None:
            yield operation.handled, f"runs {name}"
        if operation.returned is not None:
            yield operation.returned, f"{name} has returned"
        if operation.hidden is not None and operation.credited is None:
            yield operation.hidden, "its credit is banked" if operation.banked else "gives a credit"
    elif operation.is_collective and operation.began is not None:
        yield operation.began, f"begins {operation.name}, {operation.way}"
        done = operation.posts[0].done
        if done is not None:
            yield done, f"{operation.name} is over"
    elif len(operation.posts) > 1 and operation.began is not None:
        posts = f"{len(operation.posts)} posts"
        yield operation.began, f"{operation.name} of {byte_count(operation.size)} takes {posts}"


def operation_spans(chosen: Sequence[Operation], known: Operations) -> Iterator[Span]:
    """The handlers that ran, and the parts of collectives."""
    for each in chosen:
        size = f", {byte_count(each.size)}" if each.size else ""
        if each.handled is not None:
            of = f"{each.name} from rank {each.source}{size}"
            yield Span(each.target, known.handler_name(each), each.handled, each.returned, of)
        elif each.is_collective and each.began is not None:
            yield Span(each.source, each.name, each.began, each.posts[0].done, each.way + size)


def outstanding(chosen: Sequence[Operation], known: Operations) -> Iterator[Outstanding]:
    """What waits in the ranks: messages for their handlers, puts and gets for their end."""
    for each in chosen:
        arrows = operation_arrows(each)
        if not arrows or each.began is None:
            continue
        size = f", {byte_count(each.size)}" if each.size else ""
        own = not is_of_program(each)
        if each.is_message:
            if arrows[0].arrived is not each.began:
                text = f"{known.handler_name(each)} from rank {each.source}{size}"
                yield Outstanding(
                    each.target, OPERATION_QUEUES[0][0], each.began, each.handled, text, own
                )
        elif arrows[-1].arrived is not arrows[0].sent:
            ends = [arrow.arrived for arrow in arrows if arrow.arrived is not None]
            over = max(ends, key=lambda end: end.time) if len(ends) == len(arrows) else None
            way = "from" if each.name == "get" else "to"
            text = f"{each.name} {way} rank {each.target}{size}"
            yield Outstanding(each.source, OPERATION_QUEUES[1][0], arrows[0].sent, over, text, own)


def credit_words(arrow: Arrow) -> str:
    """How many credits an arrow brings; empty for one that brings none."""
    if arrow.name != "credit":
        return ""
    fields: Mapping[str, Any] = fields_of(arrow.sent)
    count = fields.get("count", 1)
    return "a credit" if count == 1 else f"{count} credits"
