"""A traced job as the records of OTF2: what is defined, and what happened at each location.

A rank is a location group of one location. Where calls of several threads lie across each other,
which one location cannot have, each thread more that is needed makes one more location. A call is a
region of its own for each line it is made from. Of a message both sides are written, where the
trace has them: with a request where a nonblocking call began it. Messages of collectives are not
written, as in Score-P: the collective is.

Nothing here needs OTF2's library; `otf2_archive.py` writes it.

Source: OTF2 3.0, "OTF2 records" (perftools.pages.jsc.fz-juelich.de/cicd/otf2/tags/latest/html).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ompy.trace.calls import API, Call, fields_of, joint_calls
from ompy.trace.communicators import GROUP, Communicator, Communicators
from ompy.trace.exporting.mpi_names import (
    COLLECTIVES,
    collective_operation,
    is_nonblocking,
    mpi_name,
)
from ompy.trace.message_events import Message, messages
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace

ENTER: Final = "Enter"
LEAVE: Final = "Leave"


class Region(NamedTuple):
    """What a location is in: a call of MPI from one line.

    Attributes:
        name: in MPI.
        call: as mpi4py has it.
        role: how data go in a collective, `message`, `one-sided`, `file` or empty.
        file, line, function: where the program calls it.
    """

    name: str
    call: str
    role: str
    file: str
    line: int
    function: str


class Place(NamedTuple):
    """A location: a rank, and which of its threads at a time."""

    rank: int
    lane: int = 0


class Record(NamedTuple):
    """An event.

    Attributes:
        time: nanoseconds from the beginning of the trace.
        place: where.
        name: of the record in OTF2.
        values: its attributes by their names there; regions and communicators are ours.
    """

    time: int
    place: Place
    name: str
    values: dict[str, Any]


def otf2_records(trace: JobTrace) -> list[Record]:
    """The events of a trace in order; for each location they are in order too."""
    return _Maker(trace).made()


class _Maker:
    """Takes a trace apart."""

    def __init__(self, trace: JobTrace) -> None:
        self._events = trace.events
        self._order = {id(event): place for place, event in enumerate(trace.events)}
        self._calls = joint_calls(trace.events)
        self._ranks = sorted({*trace.headers, *(event.rank for event in trace.events)})
        self._ends = {event.rank: event for event in trace.events}  # the last of each
        self._lanes: dict[int, Place] = {}  # by the identity of a call's first event
        self._around: dict[int, Call] = {}  # the innermost call of an event
        self._communicator: dict[int, Communicator] = {}  # of an event with a context
        self._found: list[tuple[int, int, int, Record]] = []
        self._requests = 0

    def made(self) -> list[Record]:
        """All records."""
        parts = [part for call in self._calls for part in call.parts]
        parts.sort(key=lambda part: self._order[id(part.began)])
        self._choose_lanes(parts)
        self._look_around(parts)
        for depth, part in enumerate(parts):
            self._add_call(part, depth)
        for message in messages(self._events):
            if message.tag >= 0:
                self._add_message(message)
        self._found.sort(key=lambda found: found[:3])
        return [record for *_, record in self._found]

    def _choose_lanes(self, parts: Sequence[Call]) -> None:
        """Give each call the first location of its rank in which it does not lie across others."""
        open_: dict[Place, list[int]] = {}  # where the calls end that a location is in
        for part in parts:
            began = self._order[id(part.began)]
            end = self._order[id(part.ended or self._ends[part.rank])]
            lane = 0
            while True:
                stack = open_.setdefault(Place(part.rank, lane), [])
                while stack and stack[-1] < began:
                    stack.pop()
                if not stack or end <= stack[-1]:
                    break
                lane += 1
            stack.append(end)
            self._lanes[id(part.began)] = Place(part.rank, lane)

    def _look_around(self, parts: Sequence[Call]) -> None:
        """Find in which call each event was, and which communicators were known then."""
        begins = {id(part.began): part for part in parts}
        ends = {id(part.ended): part for part in parts if part.ended is not None}
        inside: dict[int, list[Call]] = {}
        known = Communicators(self._ranks)
        for event in self._events:
            stack = inside.setdefault(event.rank, [])
            if event.layer == API and event.name == GROUP:
                known.take_event(event)
            if id(event) in begins:
                stack.append(begins[id(event)])
            elif id(event) in ends:
                stack.remove(ends[id(event)])
            if stack:
                self._around[id(event)] = stack[-1]
            context = fields_of(event).get("context")
            if context is not None:
                self._communicator[id(event)] = known.of(event.rank, context)

    def _add(
        self, event: Event, turn: tuple[int, int], place: Place, name: str, **values: Any
    ) -> None:
        """A record at the time of an event; of those of one event, `turn` says which is first."""
        record = Record(event.time, place, name, values)
        self._found.append((self._order[id(event)], *turn, record))

    def _add_call(self, part: Call, depth: int) -> None:
        place = self._lanes[id(part.began)]
        end = part.ended or self._ends[part.rank]
        region = _region(part)
        self._add(part.began, (0, depth), place, ENTER, region=region)
        # what ends with the rank's last event ends behind all of it, the innermost first
        self._add(end, (4, -depth), place, LEAVE, region=region)
        operation = collective_operation(part.name) if "collective" in part.fields else ""
        if operation:
            communicator = self._communicator[id(part.began)]
            sent, received = _sizes(part, operation, communicator)
            self._add(part.began, (1, depth), place, "MpiCollectiveBegin")
            self._add(
                end,
                (3, -depth),
                place,
                "MpiCollectiveEnd",
                collective_op=operation,
                communicator=communicator,
                root=_root(part, communicator),
                size_sent=sent,
                size_received=received,
            )

    def _add_message(self, message: Message) -> None:
        """Both sides of a message of the program, as far as they are known."""
        self._requests += 2
        sent = [event for event in message.sends if event.name == "PROTOCOL"]
        if sent:
            self._add_send(message, sent[0])
        done = [event for event in message.receives if event.name == "COMPLETE"]
        if done:
            self._add_receive(message, done[0])

    def _common(self, message: Message, event: Event) -> dict[str, Any]:
        communicator = self._communicator[id(event)]
        size = message.size or sum(fields_of(e).get("payload", 0) for e in message.receives)
        return {"communicator": communicator, "msg_tag": message.tag, "msg_length": max(size, 0)}

    def _add_send(self, message: Message, first: Event) -> None:
        call = self._around.get(id(first))
        place = self._place(call, first)
        common = self._common(message, first)
        peers = common["communicator"].peers
        if message.receiver not in peers:
            return
        receiver = peers.index(message.receiver)
        if call is None or not is_nonblocking(call.name):
            self._add(first, (2, 0), place, "MpiSend", receiver=receiver, **common)
            return
        request = self._requests
        self._add(first, (2, 0), place, "MpiIsend", receiver=receiver, **common, request_id=request)
        for done in [event for event in message.sends if event.name == "COMPLETE"][:1]:
            self._add(done, (2, 0), place, "MpiIsendComplete", request_id=request)

    def _add_receive(self, message: Message, done: Event) -> None:
        begun = message.posted or done
        call = self._around.get(id(begun))
        place = self._place(call, begun)
        common = self._common(message, done)
        sender = fields_of(done)["source"]
        if sender >= len(common["communicator"].peers):
            return
        if call is None or not is_nonblocking(call.name):
            self._add(done, (2, 0), place, "MpiRecv", sender=sender, **common)
            return
        request = self._requests + 1
        self._add(begun, (2, 0), place, "MpiIrecvRequest", request_id=request)
        self._add(done, (2, 1), place, "MpiIrecv", sender=sender, **common, request_id=request)

    def _place(self, call: Call | None, event: Event) -> Place:
        return Place(event.rank) if call is None else self._lanes[id(call.began)]


def _region(part: Call) -> Region:
    fields = part.fields
    return Region(
        mpi_name(part.name),
        part.name,
        _role(part.name),
        str(fields["file"]),
        int(fields["line"]),
        str(fields["function"]),
    )


def _role(call: str) -> str:
    operation = call[:1].upper() + call[1:]
    if call[:1] in "Ii":
        operation = call[1:].capitalize()
    if operation in COLLECTIVES:
        return COLLECTIVES[operation]
    kind = call.rpartition(".")[0]
    if kind in ("Win", "File"):
        return {"Win": "one-sided", "File": "file"}[kind]
    lowered = call.lower()
    return "message" if "send" in lowered or "recv" in lowered or "probe" in lowered else ""


def _root(part: Call, communicator: Communicator) -> int | None:
    """The root of a collective, if it has one that can be."""
    root = part.fields.get("root")
    return root if isinstance(root, int) and 0 <= root < len(communicator.peers) else None


def _sizes(part: Call, operation: str, communicator: Communicator) -> tuple[int, int]:
    """Bytes a rank gives and gets, as far as its own arguments say; 0 of objects.

    Of a call with a root the root gives or gets as much for each member.
    """
    size = max(int(part.fields.get("bytes", 0)), 0)
    way = COLLECTIVES[operation]
    if way == "barrier":
        return 0, 0
    if way in ("one to all", "all to one"):
        members = communicator.members
        root = _root(part, communicator)
        at_root = root is not None and root < len(members) and members[root] == part.rank
        gives = at_root if way == "one to all" else not at_root
        return (size, 0) if gives else (0, size)
    return size, size


def places_of(records: Sequence[Record]) -> list[Place]:
    """The locations that have records, in order."""
    return sorted({record.place for record in records})


def communicators_of(records: Sequence[Record]) -> list[Communicator]:
    """The communicators that records name, in order."""
    named = (record.values.get("communicator") for record in records)
    return sorted({each for each in named if each is not None})


def regions_of(records: Sequence[Record]) -> list[Region]:
    """The regions that records name, in order."""
    return sorted({record.values["region"] for record in records if "region" in record.values})


__all__ = [
    "ENTER",
    "LEAVE",
    "Place",
    "Record",
    "Region",
    "communicators_of",
    "otf2_records",
    "places_of",
    "regions_of",
]
