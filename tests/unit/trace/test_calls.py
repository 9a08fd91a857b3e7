"""Calls of the API, read from events written by hand: which are one, and what they were made of."""

from __future__ import annotations

import json
import sys

import pytest
from ompy.calls.caller import Caller
from ompy.cli.tracing.trace_calls import call_text, listing
from ompy.trace.call_steps import Order, ranks_text, rounds, step_lines
from ompy.trace.calls import joint_calls, messages_of
from ompy.trace.exporting.chrome import chrome
from ompy.trace.message_events import messages
from ompy.trace.program_lines import LINE
from ompy.trace.reading import DamageError, RankHeader, event_of
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace

TAG = -1000


def event(time: int, rank: int, layer: str, name: str, **fields: object) -> Event:
    return Event(time, rank, layer, name, tuple(fields.items()))


def call(time: int, rank: int, number: int, name: str = "Bcast", **fields: object) -> Event:
    where = {"file": "/home/app.py", "line": 7, "function": "main"}
    return event(time, rank, "api", "CALL", number=number, call=name, **fields, **where)


def ended(time: int, rank: int, number: int, **fields: object) -> Event:
    return event(time, rank, "api", "RETURN", number=number, **fields)


def collective(time: int, rank: int, number: int, which: int, **fields: object) -> Event:
    known = {"context": 0, "comm": "WORLD", "group": 5, "collective": which}
    return call(time, rank, number, **known, internal=TAG - which, **fields)


def served(time: int, rank: int, which: int, algorithm: str = "chain") -> Event:
    fields = {"operation": "bcast", "component": "tuned", "algorithm": algorithm}
    return event(
        time, rank, "coll", "SERVED", **fields, context=0, collective=which, tag=TAG - which
    )


def step(time: int, rank: int, which: int, number: int) -> Event:
    return event(time, rank, "coll", "STEP", context=0, tag=TAG - which, step=number)


def message(time: int, sender: int, receiver: int, which: int, size: int = 8) -> list[Event]:
    """A message that arrives at the same moment; it is the only one of the two."""
    fields = {"context": 0, "source": sender, "tag": TAG - which, "sequence": which}
    sent = {**fields, "side": "send", "peer": receiver}
    got = {**fields, "side": "receive", "peer": sender}
    return [
        event(time, sender, "pml", "PROTOCOL", **sent, size=size, protocol="Eager"),
        event(time, sender, "pml", "MATCH", **sent, payload=size),
        event(time, receiver, "pml", "MATCH", **got, payload=size),
        event(time, receiver, "pml", "COMPLETE", **got),
    ]


def test_calls_of_all_members_are_one() -> None:
    events = [collective(0, 0, 1, 1), collective(5, 1, 1, 1, root=0), ended(6, 1, 1)]
    events += [ended(9, 0, 1, error="MPI_ERR_ROOT"), collective(10, 0, 2, 2)]
    one, other = joint_calls(events)
    assert [part.rank for part in one.parts] == [0, 1]
    assert (one.start_time, one.end_time) == (0, 9)
    assert one.communicator == "WORLD #1"
    assert one.amount == "root 0"
    assert one.errors == {"MPI_ERR_ROOT": [0]}
    assert one.lines == "app.py:7"
    assert other.first.ended is None


def test_a_communicator_that_has_the_id_of_an_earlier_one_has_calls_of_its_own() -> None:
    events = [collective(time, 0, time, which) for time, which in enumerate((1, 2, 1), 1)]
    assert len(joint_calls(events)) == 3


def test_two_groups_with_one_id_are_apart() -> None:
    mine = call(0, 0, 1, context=0, group=1, collective=1)
    theirs = call(1, 1, 1, context=0, group=2, collective=1)
    assert len(joint_calls([mine, theirs])) == 2


def chain(which: int = 1) -> list[Event]:
    """0 sends to 1, which sends to 2: all at one moment, as in a virtual world."""
    events = [collective(0, rank, 1, which) for rank in range(3)]
    events += [served(0, rank, which) for rank in range(3)]
    events += [step(0, rank, which, 1) for rank in range(3)]
    events += [*message(0, 0, 1, which), step(0, 1, which, 2), *message(0, 1, 2, which)]
    return [*events, *(ended(1, rank, 1) for rank in range(3))]


def test_rounds_go_by_what_came_first_not_by_the_clock() -> None:
    events = chain()
    (found,) = joint_calls(events)
    own = messages_of(found, [found], messages(events))
    parts = rounds(found, own, Order(events))
    assert [[(m.sender, m.receiver) for m in part] for part in parts] == [[(0, 1)], [(1, 2)]]
    assert step_lines(found, own, events) == [
        "as 2 messages",
        "  round 1         8 B   0 -> 1",
        "  round 2         8 B   1 -> 2",
    ]
    assert found.served == "tuned: chain"


def test_messages_of_another_call_are_not_its_own() -> None:
    events = [*chain(), *message(20, 2, 0, 9)]
    (found,) = joint_calls(events)
    assert len(messages(events)) == 3
    assert len(messages_of(found, [found], messages(events))) == 2


def test_what_is_done_in_memory() -> None:
    def memory(rank: int, name: str, size: int = 0, **more: object) -> Event:
        fields = {"context": 0, "collective": 1, "number": 7, "bytes": size}
        return event(1, rank, "coll.sm", name, **fields, **more)

    events = [collective(0, rank, 1, 1) for rank in range(3)]
    events += [memory(rank, "SHOW", 8) for rank in range(3)]
    events += [memory(2, "READ", 8, owner=2), memory(2, "RESULT", 8)]
    events += [memory(rank, "READ", 4, owner=-1) for rank in (0, 0, 1, 1)]
    events += [memory(rank, "DONE") for rank in (0, 1, 2, 2)]
    (found,) = joint_calls(events)
    assert step_lines(found, [], events) == [
        "in shared memory",
        "    1. all show fragment 1 of 8 B",
        "    2. rank 2 reads 8 B of what it shows itself",
        "    3. rank 2 puts the result of fragment 1",
        "    4. ranks 0-1 read 8 B of the result",
        "    5. all are done with fragment 1",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"bytes": 8, "dest": 1, "tag": 7}, "Send of 8 B, to 1, tag 7, WORLD"),
        ({"source": 0, "tag": 7}, "Send from 0, tag 7, WORLD"),
        ({"source": -1}, "Send from any, WORLD"),
        ({"root": 2}, "Send, root 2, WORLD"),
        ({}, "Send, WORLD"),
    ],
)
def test_a_calls_first_line(arguments: dict[str, object], said: str) -> None:
    own = {"number": 1, "call": "Send", "file": "a.py", "line": 1, "function": "f", "comm": "WORLD"}
    events = [event(0, 0, "api", "CALL", **own, **arguments)]
    (found,) = joint_calls(events)
    assert call_text(1, found, [found], events).splitlines()[0] == f"call 1: {said}"


def test_ranks_in_words() -> None:
    assert ranks_text([3, 0, 1, 2], 4) == "all"
    assert ranks_text([0, 1, 2, 7], 9) == "ranks 0-2, 7"
    assert ranks_text([5], 9) == "rank 5"


def test_chromes_slices_are_nested() -> None:
    """The call around its steps, on a track that comes first; an unended call lasts to the end."""
    events = [*chain(), collective(3, 0, 2, 2), event(9, 0, "pml", "OTHER")]
    trace = JobTrace({}, {rank: RankHeader(rank) for rank in range(3)}, {}, events)
    found = json.loads(chrome(trace))["traceEvents"]
    calls = [each for each in found if each.get("cat") == "api"]
    assert [(each["pid"], each["ts"], each["dur"]) for each in calls] == [
        *((rank, 0, 0.001) for rank in range(3)),
        (0, 0.003, 0.006),
    ]
    assert calls[0]["args"]["served by"] == "tuned: chain"
    assert calls[3]["args"]["ended"] is False
    steps = [each for each in found if each.get("cat") == "coll"]
    assert len(steps) == 4
    assert {each["tid"] for each in (*calls, *steps)} == {1}
    assert all(each["ts"] + each["dur"] <= 0.001 for each in steps)


def test_a_call_that_is_none_is_damage() -> None:
    whole = {"number": 1, "call": "Bcast", "file": "a.py", "line": 1, "function": "f"}
    assert event_of([0, "api", "CALL", whole], 0).name == "CALL"
    for wrong in ({**whole, "line": "1"}, {**whole, "call": 3}, {"number": 1}):
        with pytest.raises(DamageError):
            event_of([0, "api", "CALL", wrong], 0)


def test_what_is_missing_is_damage_before_it_is_read() -> None:
    """Whatever one field of an event is left out of: it is read to the end, or no event."""
    events = chain()
    for place, each in enumerate(events):
        for name, _ in each.fields:
            fields = {key: value for key, value in each.fields if key != name}
            try:
                less = event_of([each.time, each.layer, each.name, fields], each.rank)
            except DamageError:
                continue
            changed = [*events[:place], less, *events[place + 1 :]]
            found = joint_calls(changed)
            for one in found:
                step_lines(one, messages_of(one, found, messages(changed)), changed)
                assert isinstance(call_text(1, one, found, changed), str)
                assert isinstance(listing([(1, one)]), str)
            chrome(JobTrace({}, {rank: RankHeader(rank) for rank in range(3)}, {}, changed))


class Recorded:
    """A trace that keeps what it is told."""

    active = True

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def record(self, _layer: str, name: str, **fields: object) -> None:
        self.events.append((name, fields))


def test_a_line_of_the_program_is_written_once() -> None:
    """Before the first call that stands there; not while nobody traces."""
    trace = Recorded()
    caller = Caller(trace)  # type: ignore[arg-type]
    for _ in range(3):
        here = caller.site(sys._getframe())
    first, second = caller.site(sys._getframe()), caller.site(sys._getframe())  # in one line
    assert first == second
    lines = {fields["line"]: fields["text"] for name, fields in trace.events if name == LINE}
    assert lines[here[1]] == "here = caller.site(sys._getframe())"
    assert lines[first[1]].endswith("# in one line")
    assert len(trace.events) == 2
    trace.active = False
    caller.site(sys._getframe())
    assert len(trace.events) == 2
