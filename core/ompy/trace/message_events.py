"""From events to messages: what belongs together on both sides, and what arrived as what.

A message is named by its communicator, its sender's rank there, its receiver and its sequence
number. Sequence numbers wrap, and context ids are used again: an event behind the completion of
a side belongs to the next message of that name.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

from ompy.trace.sink import Event

SEND: Final = "send"
RECEIVE: Final = "receive"
FIRST: Final = ("MATCH", "RNDV", "RGET")  # headers that begin a message
NOTIFY: Final = "RNDVRESTARTNOTIFY"
# what is said between two tries to bring a message over; source: seed bfo
DANCE: Final = (NOTIFY, "RECVERRNOTIFY", "RNDVRESTARTACK", "RNDVRESTARTNACK")
BROKE: Final = ("RAIL", "broke")  # an event, and what it tells of


class Kind(Enum):
    """What an arrow is."""

    DATA = "fragment with data"
    CONTROL = "control message"
    RDMA = "put or get"


class Arrow(NamedTuple):
    """Something that went from one rank to the other.

    Attributes:
        name: its header, or `put` or `get`.
        kind: what it is.
        sent: the event of whoever sent it, or began the put or get.
        arrived: the event of its arrival; of a put or get, of its completion at the side that
            began it. None when the trace has none.
        source, target: world ranks: data of a get goes to the rank that began it.
        size: bytes of payload, or moved.
    """

    name: str
    kind: Kind
    sent: Event
    arrived: Event | None
    source: int
    target: int
    size: int


class Message:
    """One message, as both sides saw it.

    Attributes:
        sender, receiver: world ranks; -1 while only the other side's events are known.
        context: id of the communicator.
        tag: of it.
        sequence: number of it.
        size: packed bytes, as the sender says.
        protocol: the sender's candidate, or "".
        decided: what the receiver made of it; "" for eager messages.
        sends: the sender's events in order.
        receives: the receiver's events in order.
        posted: the event of posting the receive; None when the message was there before.
        breaks: events of rails between the two that broke meanwhile, where one of them is lost.
    """

    def __init__(self, context: int, receiver: int, sequence: int) -> None:
        self.sender = -1
        self.receiver = receiver
        self.context = context
        self.sequence = sequence
        self.tag = 0
        self.size = 0
        self.protocol = self.decided = ""
        self.sends: list[Event] = []
        self.receives: list[Event] = []
        self.posted: Event | None = None
        self.breaks: list[Event] = []

    @property
    def start_time(self) -> int:
        """When the first thing happened, posting apart."""
        return min(event.time for event in (*self.sends, *self.receives))

    @property
    def end_time(self) -> int:
        """When the last thing happened."""
        return max(event.time for event in (*self.sends, *self.receives))

    @property
    def restarts(self) -> list[Event]:
        """First fragments that the sender sent again, after something had failed."""
        return [event for event in self.sends if event.name in FIRST][1:]

    @property
    def failed_over(self) -> bool:
        """Whether something went again, or was to."""
        return bool(self.restarts) or any(event.name in DANCE for event in self.events())

    def events(self) -> list[Event]:
        """Both sides' events, in order."""
        return sorted((*self.sends, *self.receives), key=lambda event: event[:2])

    def add_event(self, event: Event, fields: dict[str, Any]) -> None:
        """Take in an event of either side."""
        self.tag = fields.get("tag", self.tag)
        peer = fields.get("peer")
        if fields["side"] == SEND:
            self.sender = event.rank
            self.sends.append(event)
        else:
            self.receives.append(event)
            self.sender = self.sender if peer is None else peer
        if event.name == "PROTOCOL":
            self.size = fields["size"]
            if fields["side"] == SEND:
                self.protocol = fields["protocol"]
            else:
                self.decided = fields["protocol"]

    def arrows(self) -> list[Arrow]:
        """What went to and fro, in the order of sending."""
        pairs = _Pairs()
        gets = {_value(e, "offset") for e in self.receives if e.name == "READ"}
        for event in self.sends:
            pairs.sender(event)
        for event in self.receives:
            pairs.receiver(event, gets)
        arrows = [
            self._arrow(name, sent, arrived, to_receiver=to_receiver)
            for name, to_receiver, sent, arrived in pairs.matched()
        ]
        return sorted(arrows, key=lambda arrow: arrow.sent[:2])

    def _arrow(self, name: str, sent: Event, arrived: Event | None, *, to_receiver: bool) -> Arrow:
        ends = (self.sender, self.receiver) if to_receiver else (self.receiver, self.sender)
        size = _value(sent, "payload") or 0
        kind = Kind.DATA if size or name in {"MATCH", "FRAG"} else Kind.CONTROL
        if name in {"put", "get"}:
            kind, size = Kind.RDMA, _value(sent, "size")
        return Arrow(name, kind, sent, arrived, *ends, size)


class _Pairs:
    """Matches what was sent with what arrived, by what the two events have in common."""

    def __init__(self) -> None:
        self._out: list[tuple[str, bool, Event, tuple[Any, ...]]] = []
        self._in: dict[tuple[str, bool, tuple[Any, ...]], deque[Event]] = {}

    def sender(self, event: Event) -> None:
        """An event of the sender."""
        name, offset, size = event.name, _value(event, "offset"), _value(event, "size")
        if name in FIRST:
            self._sent(name, True, event)
        elif name in DANCE:
            self._dance(event, to_receiver=name == NOTIFY)
        elif name == "FRAG":
            self._sent(name, True, event, offset)
        elif name in {"ACK", "PUT"}:
            self._arrived(name, False, event, offset, size)
        elif name == "WRITE":
            self._sent("put", True, event, offset)
        elif name == "FIN" and offset is not None:
            self._sent(name, True, event, offset)
            self._arrived("put", True, event, offset)
        elif name == "FIN":
            self._arrived(name, False, event, size)

    def receiver(self, event: Event, gets: set[Any]) -> None:
        """An event of the receiver, which has got the bytes at the offsets `gets`."""
        name, offset, size = event.name, _value(event, "offset"), _value(event, "size")
        if name in FIRST:
            self._arrived(name, True, event)
        elif name in DANCE:
            self._dance(event, to_receiver=name == NOTIFY)
        elif name == "FRAG":
            self._arrived(name, True, event, offset)
        elif name in {"ACK", "PUT"}:
            self._sent(name, False, event, offset, size)
        elif name == "READ":
            self._sent("get", True, event, offset)
        elif name == "FIN" and offset in gets:
            self._sent(name, False, event, size)
            self._arrived("get", True, event, offset)
        elif name == "FIN":
            self._arrived(name, True, event, offset)

    def _dance(self, event: Event, *, to_receiver: bool) -> None:
        take = self._sent if _value(event, "what") == "sent" else self._arrived
        take(event.name, to_receiver, event, _value(event, "restart"))

    def _sent(self, name: str, to_receiver: bool, event: Event, *common: Any) -> None:
        self._out.append((name, to_receiver, event, common))

    def _arrived(self, name: str, to_receiver: bool, event: Event, *common: Any) -> None:
        self._in.setdefault((name, to_receiver, common), deque()).append(event)

    def matched(self) -> Iterator[tuple[str, bool, Event, Event | None]]:
        """Name, direction, both events; equals are matched in their order.

        Where one was sent more often than it arrived, an arrival is that of the last one sent
        before it: the others were lost.
        """
        left = Counter((name, way, common) for name, way, _, common in self._out)
        later: dict[tuple[str, bool, tuple[Any, ...]], deque[int]] = {}
        for name, way, sent, common in self._out:
            later.setdefault((name, way, common), deque()).append(sent.time)
        for name, way, sent, common in self._out:
            key = (name, way, common)
            waiting = self._in.get(key, deque())
            left[key] -= 1
            later[key].popleft()
            spare = left[key] >= len(waiting) and name in (*FIRST, "FRAG", *DANCE)
            lost = spare and bool(waiting) and waiting[0].time >= later[key][0]
            yield name, way, sent, waiting.popleft() if waiting and not lost else None


def _value(event: Event, name: str) -> Any:
    for key, value in event.fields:
        if key == name:
            return value
    return None


def messages(events: Iterable[Event]) -> list[Message]:
    """The messages of a trace, in the order they began.

    Args:
        events: of all ranks, in order.
    """
    found: dict[tuple[int, int, int, int, int], Message] = {}
    done: dict[tuple[int, int, int, int, str], int] = {}
    posts: dict[tuple[int, int, int], Event] = {}
    told = list(events)
    for event in told:
        fields = dict(event.fields)
        side: Any = fields.get("side")
        if event.name == "POST":
            posts[event.rank, _number(fields, "context"), _number(fields, "posted")] = event
        if side is None or "sequence" not in fields:
            continue
        receiver = _number(fields, "peer") if side == SEND else event.rank
        context, sequence = _number(fields, "context"), _number(fields, "sequence")
        name = (context, _number(fields, "source"), receiver, sequence)
        generation = done.get((*name, side), 0)
        if event.name in DANCE and generation and (*name, generation) not in found:
            generation -= 1  # an answer to who has not heard yet that all is there
        message = found.get((*name, generation))
        if message is None:
            message = found[(*name, generation)] = Message(context, receiver, sequence)
        message.add_event(event, fields)
        if event.name == "COMPLETE":
            done[(*name, side)] = generation + 1
            if fields.get("posted"):
                message.posted = posts.get((event.rank, context, _number(fields, "posted")))
    _note_breaks(found.values(), told)
    return sorted(found.values(), key=lambda message: message.start_time)


def _note_breaks(found: Iterable[Message], events: Iterable[Event]) -> None:
    """Give the messages that failed over the rails that broke meanwhile."""
    breaks = [event for event in events if (event.name, _value(event, "what")) == BROKE]
    for message in found:
        if breaks and message.failed_over:
            message.breaks = [event for event in breaks if _concerns(event, message)]


def _concerns(event: Event, message: Message) -> bool:
    """Whether a rail between the two broke while a message was under way."""
    ends = {event.rank, _value(event, "peer")}
    return message.start_time <= event.time <= message.end_time and ends == {
        message.sender,
        message.receiver,
    }


def _number(fields: dict[str, Any], name: str) -> int:
    return int(fields[name])
