"""From events to GASNet's operations: active messages of both sides, puts and gets, their posts.

A message is named by its sender, its receiver and its number among those between the two, which
both sides count; `tracing.py` of `conduit/gni` has the events. A reply is that of the request of
its receiver whose handler runs, as replies are sent from there alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ompy.trace.sink import Event

API: Final = "gasnet"  # layer of what needs no conduit
CONDUIT: Final = "conduit."  # how the layers of conduits begin
CLIENT: Final = 128  # reference gasnet.md 1: handlers from here on are the program's
TRANSFERS: Final = ("PUT", "GET", "ATOMIC")
COLLECTIVE: Final = "COLL"
COLLECTIVE_DONE: Final = "COLL_DONE"
POSTS: Final = ("FMA_PUT", "BTE_PUT", "FMA_GET", "BTE_GET", "FMA_AMO", "FMA_FAMO")
ENDS: Final = ("DONE", "FAILED")
PLACES: Final = {  # what a way is called for people
    "direct": "unregistered",
    "segment": "in the segment",
    "immediate": "immediate buffer",
    "bounce": "bounce buffer",
    "register": "registered",
}


@dataclass(eq=False)
class Post:
    """One post of a put or get.

    Attributes:
        began: the event of handing it to the NIC.
        done: that of taking its completion; None when the trace has none.
        way: `FMA put, bounce buffer`.
        lead: bytes a get read that nobody wanted.
    """

    began: Event
    way: str
    size: int
    lead: int = 0
    done: Event | None = None


@dataclass(eq=False)
class Operation:
    """An active message, or a put or get.

    Attributes:
        name: GASNet's, as AMRequestShort; or put, get.
        source, target: world ranks: who sent the message, who puts or gets; and the other.
        size: bytes of payload.
        handler: index, of a message; -1 else.
        way: which way it takes, for people.
        began: the event of its beginning; None of a message whose sender was not traced.
        handled, returned: of a message: its handler began, has returned.
        answers: of a reply, the request.
        answered: of a request, the reply.
        stalled: when a request began to wait for a credit, or None.
        credits: of a request, how many were left when it was sent; -1 else.
        hidden: of a request that nobody answered: its credit goes back, or to the bank.
        banked: it went to the bank.
        credited: the credit, and perhaps the bank's, has come back; None where it rode along.
        posts: of a put or get.
        is_collective: one member's part of a collective; its call is the name.
    """

    name: str
    source: int
    target: int
    size: int = 0
    handler: int = -1
    way: str = ""
    began: Event | None = None
    handled: Event | None = None
    returned: Event | None = None
    answers: Operation | None = None
    answered: Operation | None = None
    stalled: Event | None = None
    credits: int = -1
    hidden: Event | None = None
    banked: bool = False
    credited: Event | None = None
    posts: list[Post] = field(default_factory=list)
    is_collective: bool = False

    @property
    def is_message(self) -> bool:
        """It is no put or get."""
        return self.handler >= 0

    def events(self) -> list[Event]:
        """All that is known of it, in order."""
        own = [self.stalled, self.began, self.handled, self.returned]
        own += [self.hidden, self.credited]
        own += [event for post in self.posts for event in (post.began, post.done)]
        return sorted((event for event in own if event is not None), key=lambda e: e[:2])

    @property
    def start_time(self) -> int:
        """When it began."""
        return self.events()[0].time

    @property
    def end_time(self) -> int:
        """When the last thing of it happened."""
        return self.events()[-1].time


class Operations:
    """The operations of a trace.

    Attributes:
        all: in the order they began.
        names: of handlers, by rank and index.
        order: of each event of theirs, by its identity, the place among all events.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        """Read the events of all ranks, in order."""
        self.all: list[Operation] = []
        self.names: dict[tuple[int, int], str] = {}
        self.order: dict[int, int] = {}
        self._messages: dict[tuple[int, int, int], Operation] = {}
        self._transfers: dict[tuple[str, int, Any], Operation] = {}
        self._posts: dict[tuple[int, Any], Post] = {}
        self._running: dict[tuple[int, int], Operation] = {}
        self._ended: dict[tuple[int, int], Operation] = {}
        self._stalled: dict[tuple[int, int], Event] = {}
        self._on_the_way: dict[tuple[int, int, int], deque[Operation]] = {}
        for place, event in enumerate(events):
            if event.layer == API or event.layer.startswith(CONDUIT):
                self.order[id(event)] = place
                self._take(event, dict(event.fields))
        self.all = [operation for operation in self.all if operation.events()]
        self.all.sort(key=lambda operation: operation.start_time)

    def handler_name(self, operation: Operation) -> str:
        """What a message's handler is called where it runs."""
        index = operation.handler
        return self.names.get((operation.target, index), f"handler {index}")

    def _take(self, event: Event, fields: Mapping[str, Any]) -> None:
        name = event.name
        if name.startswith("AM"):
            self._sent(event, fields)
        elif name == "NAME":
            self.names[event.rank, fields["handler"]] = fields["function"]
        elif name == "HANDLER":
            operation = self._message(fields["peer"], event.rank, fields["am"])
            operation.handled = event
            self._running[event.rank, operation.source] = operation
        elif name == "RETURN":
            operation = self._message(fields["peer"], event.rank, fields["am"])
            operation.returned = event
            self._running.pop((event.rank, operation.source), None)
            self._ended[event.rank, operation.source] = operation
        elif name == "CREDIT":
            self._credit(event, fields)
        elif name in TRANSFERS:
            self._transfer(event, fields)
        elif name in POSTS:
            self._post(event, fields)
        elif name == COLLECTIVE:
            self._collective(event, fields)
        elif name in (*ENDS, COLLECTIVE_DONE):
            self._ended_post(event, fields)

    def _ended_post(self, event: Event, fields: Mapping[str, Any]) -> None:
        if event.name == COLLECTIVE_DONE:
            known = self._transfers.get((event.layer, event.rank, fields["op"]))
            post = known.posts[0] if known is not None and known.posts else None
        else:
            post = self._posts.get((event.rank, fields["post"]))
        if post is not None:
            post.done = event

    def _message(self, source: int, target: int, number: int) -> Operation:
        known = self._messages.get((source, target, number))
        if known is None:
            known = self._messages[source, target, number] = Operation("?", source, target)
            known.handler = 0
            self.all.append(known)
        return known

    def _sent(self, event: Event, fields: Mapping[str, Any]) -> None:
        peer = fields["peer"]
        if event.layer == API:  # of the own rank: it has no other side
            operation = Operation(event.name, event.rank, peer)
            self.all.append(operation)
        else:
            operation = self._message(event.rank, peer, fields["am"])
        operation.name, operation.began = event.name, event
        operation.size, operation.handler = fields["size"], fields["handler"]
        packed = {0: ", put before", 1: ", packed"}.get(fields.get("packed", -1), "")
        operation.way = fields["way"] + packed
        operation.credits = fields.get("credits", -1)
        if event.name.startswith("AMReply"):
            asked = self._running.get((event.rank, peer))
            if asked is not None:
                operation.answers, asked.answered = asked, operation
        else:
            operation.stalled = self._stalled.pop((event.rank, peer), None)

    def _credit(self, event: Event, fields: Mapping[str, Any]) -> None:
        place = (event.rank, fields["peer"])
        if fields["what"] == "stall":
            self._stalled[place] = event
        elif fields["what"] in ("sent", "banked") and place in self._ended:
            asked = self._ended.pop(place)
            asked.hidden, asked.banked = event, fields["what"] == "banked"
            if not asked.banked:
                way = (asked.source, event.rank, fields["count"])
                self._on_the_way.setdefault(way, deque()).append(asked)
        elif fields["what"] == "back":  # those that ride on a message were never sent
            waiting = self._on_the_way.get((*place, fields["count"]))
            if waiting:
                waiting.popleft().credited = event

    def _transfer(self, event: Event, fields: Mapping[str, Any]) -> None:
        made = Operation(event.name.lower(), event.rank, fields["peer"], fields["size"])
        made.began, made.way = event, fields["way"]
        self._transfers[event.layer, event.rank, fields["op"]] = made
        self.all.append(made)

    def _collective(self, event: Event, fields: Mapping[str, Any]) -> None:
        """One member's part of a collective, from its call to its end."""
        made = Operation(fields["call"], event.rank, fields["peer"], fields["size"])
        made.began, made.way = event, f"collective {fields['way']}"
        made.is_collective = True
        made.posts.append(Post(event, made.way, made.size))
        self._transfers[event.layer, event.rank, fields["op"]] = made
        self.all.append(made)

    def _post(self, event: Event, fields: Mapping[str, Any]) -> None:
        kind = event.name.replace("_", " ").replace("PUT", "put").replace("GET", "get")
        kind = kind.replace("FAMO", "AMO that fetches")
        way = f"{kind}, {PLACES.get(fields['place'], fields['place'])}"
        made = Post(event, way, fields["size"], fields.get("lead", 0))
        self._posts[event.rank, fields["post"]] = made
        of = self._transfers.get((event.layer, event.rank, fields["op"]))
        if of is not None:
            of.posts.append(made)
            of.way = way_of(of)


def way_of(transfer: Operation) -> str:
    """Which way a put or get by the NIC takes, in all its posts."""
    posts = [(post.way, post.size) for post in transfer.posts]
    return way_of_posts(transfer.name, transfer.size, posts)


def way_of_posts(name: str, size: int, posts: Sequence[tuple[str, int]]) -> str:
    """The same in words, of a put or get of `size` bytes with posts of these ways and sizes."""
    ways: dict[str, int] = {}
    for way, _ in posts:
        ways[way] = ways.get(way, 0) + 1
    told = [f"{count} x {way}" if count > 1 else way for way, count in ways.items()]
    moved = sum(moved for _, moved in posts)
    unaligned = f", {moved} bytes read" if name == "get" and moved > size else ""
    return f"{'split: ' if len(posts) > 1 else ''}{'; '.join(told)}{unaligned}"


def is_of_program(operation: Operation) -> bool:
    """Whether the program has asked for it, and not GASNet for a barrier, a memset or its end."""
    known = operation.began is not None
    return not operation.is_message or operation.handler >= CLIENT or not known


def operations(events: Sequence[Event]) -> Operations:
    """The operations of a trace; `events` of all ranks, in order."""
    return Operations(events)
