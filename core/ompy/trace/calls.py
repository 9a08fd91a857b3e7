"""From events to calls of the API: what a rank called, and which calls of all members are one.

A collective call is named by its communicator (context id and members) and its number there. Where
numbers begin anew on a rank, another communicator has got the id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, Final

from ompy.trace.amounts import byte_count
from ompy.trace.message_events import Message
from ompy.trace.sink import Event

API: Final = "api"
COLL: Final = "coll"
MEMORY: Final = "coll.sm"
ANY: Final = -1  # source and tag of anybody, as MPI.py's ANY_SOURCE and ANY_TAG


def fields_of(event: Event) -> dict[str, Any]:
    """What belongs to an event, by name."""
    return dict(event.fields)


class Call:
    """One call of one rank.

    Attributes:
        rank: whose.
        name: of the call, as Allreduce or Request.Wait.
        fields: what its arguments say.
        began, ended: its events; it has not ended where that is None.
        served: who served it, in order.
        steps: when the steps of its schedules began.
        memory: what was done in shared memory for it.
    """

    def __init__(self, began: Event) -> None:
        self.rank = began.rank
        self.fields = fields_of(began)
        self.name: str = self.fields["call"]
        self.began = began
        self.ended: Event | None = None
        self.served: list[Event] = []
        self.steps: list[Event] = []
        self.memory: list[Event] = []

    @property
    def error(self) -> str:
        """What it raised; empty for nothing."""
        return str(fields_of(self.ended).get("error", "")) if self.ended is not None else ""

    @property
    def line(self) -> str:
        """The line of the program, as `app.py:12`."""
        file = PurePath(self.fields["file"]).name
        return f"{file}:{self.fields['line']}" if file else ""

    def amount(self) -> str:
        """How much, of what, in words."""
        told = []
        if "bytes" in self.fields:
            told.append(byte_count(self.fields["bytes"]))
        elif "type" in self.fields:
            told.append(self.fields["type"])
        if "requests" in self.fields:
            told.append(f"{self.fields['requests']} requests")
        for name, word in (("op", ""), ("root", "root "), ("dest", "to "), ("source", "from ")):
            value = self.fields.get(name)
            if value is not None:
                told.append(f"{word}{'any' if name == 'source' and value == ANY else value}")
        tag = self.fields.get("sendtag", self.fields.get("tag"))
        if tag is not None and tag != ANY:
            told.append(f"tag {tag}")
        return ", ".join(told)


class JointCall:
    """What is one call: of all members, or of one rank where it is no collective.

    Attributes:
        parts: each rank's, in the order they began.
    """

    def __init__(self) -> None:
        self.parts: list[Call] = []

    @property
    def first(self) -> Call:
        """Of who began it first."""
        return self.parts[0]

    @property
    def name(self) -> str:
        """Of the call."""
        return self.first.name

    @property
    def is_collective(self) -> bool:
        """All members make it together."""
        return "collective" in self.first.fields

    @property
    def start_time(self) -> int:
        """When the first member began."""
        return self.first.began.time

    @property
    def end_time(self) -> int:
        """When the last member that has ended did."""
        ends = [part.ended.time for part in self.parts if part.ended is not None]
        return max([part.began.time for part in self.parts] + ends)

    @property
    def communicator(self) -> str:
        """Its name, and the call's number in it."""
        name = self.first.fields.get("comm", "")
        return f"{name} #{self.first.fields['collective']}" if self.is_collective else name

    @property
    def amount(self) -> str:
        """How much, of what: of the member that says most of it, as only roots may know."""
        return max((part.amount() for part in self.parts), key=len)

    @property
    def lines(self) -> str:
        """The lines of the program it was called from."""
        return ", ".join(dict.fromkeys(part.line for part in self.parts if part.line))

    @property
    def served(self) -> str:
        """Component and algorithm; several where it was served by several operations."""
        found: dict[str, None] = {}
        for part in self.parts:
            own = [fields_of(event) for event in part.served]
            several = len({each["operation"] for each in own}) > 1
            for each in own:
                what = f"{each['operation']} by " if several else ""
                found[f"{what}{each['component']}: {each['algorithm']}"] = None
        if (
            not found
            and self.is_collective
            and any(p.fields.get("type") == "object" for p in self.parts)
        ):
            return "objects, as messages"
        return "; ".join(found)

    @property
    def errors(self) -> dict[str, list[int]]:
        """What was raised, and by which ranks."""
        found: dict[str, list[int]] = {}
        for part in self.parts:
            if part.error:
                found.setdefault(part.error, []).append(part.rank)
        return found

    def tags(self) -> set[tuple[int, int]]:
        """Context and tag of its messages."""
        told = [fields_of(event) for part in self.parts for event in part.served]
        found = {(each["context"], each["tag"]) for each in told}
        for part in self.parts:
            if "internal" in part.fields:
                found.add((part.fields["context"], part.fields["internal"]))
        return found


class _Reader:
    """Takes events in, in order."""

    def __init__(self) -> None:
        self.found: list[JointCall] = []
        self._open: dict[tuple[int, int], Call] = {}
        self._last: dict[int, Call] = {}
        self._joint: dict[tuple[Any, ...], JointCall] = {}
        self._numbers: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._by_number: dict[tuple[int, int, int], Call] = {}
        self._by_tag: dict[tuple[int, int, int], Call] = {}

    def take_event(self, event: Event) -> None:
        """An event of the API's or a collective's."""
        fields = fields_of(event)
        if event.name == "CALL":
            self._begin(event, fields)
        elif event.name == "RETURN":
            call = self._open.pop((event.rank, fields["number"]), None)
            if call is not None:
                call.ended = event
        elif event.name == "STEP":
            call = self._by_tag.get((event.rank, fields["context"], fields["tag"]))
            if call is not None:
                call.steps.append(event)
        elif "collective" in fields:
            self._serve(event, fields)

    def _begin(self, event: Event, fields: dict[str, Any]) -> None:
        call = Call(event)
        rank = event.rank
        self._open[rank, fields["number"]] = call
        self._last[rank] = call
        joint = None
        if "collective" in fields and "context" in fields:
            context, group = fields["context"], fields.get("group", 0)
            number = fields["collective"]
            last, turn = self._numbers.get((rank, context, group), (0, 0))
            turn += number < last
            self._numbers[rank, context, group] = number, turn
            self._by_number[rank, context, number] = call
            self._by_tag[rank, context, fields.get("internal", 0)] = call
            # `barrier` and `Barrier` may be mixed; other calls have names of their own
            key = (context, group, turn, number, fields["call"].lower())
            joint = self._joint.get(key)
            if joint is None:
                joint = self._joint[key] = JointCall()
                self.found.append(joint)
        else:
            joint = JointCall()
            self.found.append(joint)
        joint.parts.append(call)

    def _serve(self, event: Event, fields: dict[str, Any]) -> None:
        key = (event.rank, fields["context"], fields["collective"])
        call = self._by_number.get(key) or self._last.get(event.rank)
        if call is None:
            return
        if event.name == "SERVED":
            call.served.append(event)
            self._by_tag[event.rank, fields["context"], fields["tag"]] = call
        else:
            call.memory.append(event)


def joint_calls(events: Iterable[Event]) -> list[JointCall]:
    """The calls of a trace, in the order they began.

    Args:
        events: of all ranks, in order.
    """
    reader = _Reader()
    for event in events:
        if event.layer in (API, COLL, MEMORY):
            reader.take_event(event)
    return reader.found


def messages_of(
    call: JointCall, calls: Iterable[JointCall], every: Iterable[Message]
) -> list[Message]:
    """The messages a call was made of.

    Args:
        call: the one.
        calls: all of the trace: tags come again, and the last call with a tag has its messages.
        every: all messages of the trace.
    """
    if not call.is_collective:
        return list(_of_rank(call.first, every))
    tags = call.tags()
    ranks = {part.rank for part in call.parts}
    later = [
        other.start_time
        for other in calls
        if other.start_time > call.start_time
        and other.is_collective
        and tags & other.tags()
        and ranks & {part.rank for part in other.parts}
    ]
    end = min(later, default=None)
    return [
        message
        for message in every
        if (message.context, message.tag) in tags
        and {message.sender, message.receiver} & ranks
        and message.start_time >= call.start_time
        and (end is None or message.start_time < end)
    ]


def _of_rank(part: Call, every: Iterable[Message]) -> Iterator[Message]:
    """Messages of the program that a rank's call had to do with."""
    end = part.ended.time if part.ended is not None else None
    for message in every:
        own = message.sends if message.sender == part.rank else []
        own = [*own, *(message.receives if message.receiver == part.rank else [])]
        within = [
            event
            for event in own
            if event.time >= part.began.time and (end is None or event.time <= end)
        ]
        if within and message.tag >= 0:
            yield message
