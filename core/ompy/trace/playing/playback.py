"""A trace as something that can be played: what a page needs to show it step by step.

A *step* is an event of a rank. Steps are in the order of time, but an arrival never comes before
its sending: they are the rows of `diagram.py`. A page moves along *places*: the gap between two
steps grows with the logarithm of the time between them, so that microseconds and seconds of one job
can both be watched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ompy.trace.amounts import byte_count, duration
from ompy.trace.calls import ANY, Call, fields_of
from ompy.trace.communicators import GROUP, Communicators
from ompy.trace.drawing.diagram import Entry, Point, assign_rows, chain, head
from ompy.trace.matching_queues import POSTED, UNEXPECTED, Waiting
from ompy.trace.message_events import SEND, Arrow, Kind, Message
from ompy.trace.operations import Operation
from ompy.trace.playing.playback_contents import Contents, choose_contents
from ompy.trace.playing.playback_operations import (
    OPERATION_FAMILIES,
    OPERATION_QUEUES,
    Outstanding,
    Span,
    credit_words,
    family_of_operation,
    operation_notes,
    operation_spans,
    operation_values,
    outstanding,
)
from ompy.trace.program_lines import program_lines
from ompy.trace.sink import Event
from ompy.trace.tag_names import tag_text
from ompy.trace.trace_files import JobTrace

WIDEST: Final = 5.0  # arbitrary: places between two steps, at most
FINALIZED: Final = "finalize"
# families of protocols: the name, what the names of their protocols have in common, and words
FAMILIES: Final = (
    ("eager", "Eager", "sent at once, with all its bytes"),
    ("pipelined", "Pipeline", "announced first, then moved in pieces"),
    ("rendezvous", "Direct", "announced first, then moved by a put or get"),
)
OTHER: Final = ("other", "", "the trace does not say the protocol")


def playback(
    trace: JobTrace,
    chosen: Sequence[Message] | None = None,
    operations: Sequence[Operation] | None = None,
) -> dict[str, Any]:
    """What a page shows, as JSON has it: numbers, texts, lists and objects.

    Args:
        trace: a traced job.
        chosen: the messages to show, as `choose_contents` takes them.
        operations: those of GASNet to show; where both are None, all there are.
    """
    contents = choose_contents(trace, chosen, operations)
    return {
        "title": _title(trace),
        "facts": _facts(trace),
        "ranks": [{"rank": rank, "head": head(rank, trace.headers)} for rank in contents.lanes],
        **_Steps(trace, contents).told(),
        "counts": _counts(contents),
        "left_out": contents.left_out,
    }


def family_of(protocol: str) -> str:
    """The family of a protocol that a trace names."""
    return next((name for name, part, _ in FAMILIES if part in protocol), OTHER[0])


def gap(nanoseconds: int) -> float:
    """Places between two steps that are so far apart in time."""
    return min(1 + math.log10(1 + max(nanoseconds, 0) / 1000), WIDEST)


class _Steps:
    """The steps of what is played, and what begins and ends at which of them."""

    def __init__(self, trace: JobTrace, contents: Contents) -> None:
        self._contents = contents
        self._lanes = {rank: lane for lane, rank in enumerate(contents.lanes)}
        self._lines = program_lines(trace.events)
        self._spans = list(operation_spans(contents.operations, contents.known))
        self._open = list(outstanding(contents.operations, contents.known))
        self._wanted = dict(_wanted_by(trace))
        self._texts: dict[int, list[str]] = {}  # by the id of an event
        self._causes: list[tuple[Event, Event]] = []
        self._note_events()
        known = [event for event in trace.events if id(event) in self._texts]
        self._entries = {id(event): self._entry(event) for event in known}
        for rank in contents.lanes:
            chain([self._entries[id(event)] for event in known if event.rank == rank])
        for cause, effect in self._causes:
            self._entries[id(effect)].after.append(self._entries[id(cause)])
        assign_rows(list(self._entries.values()))

    def told(self) -> dict[str, Any]:
        """All of it."""
        contents = self._contents
        return {
            "steps": list(self._steps()),
            "messages": [
                *(self._message(message) for message in contents.messages),
                *(self._operation(each) for each in contents.operations),
            ],
            "arrows": [self._arrow(place, arrow) for place, arrow in contents.arrows],
            "waiting": [
                *(self._queued(waiting) for waiting in contents.waiting),
                *(self._outstanding(each) for each in self._open),
            ],
            "calls": [
                *(self._call(call) for call in contents.calls),
                *(self._span(span) for span in self._spans),
            ],
            "queues": _queues(contents),
            "families": [{"name": name, "text": text} for name, text in _families(contents)],
            "outside": "in no handler" if contents.operations else "outside of MPI",
        }

    # what happens in a step

    def _note(self, event: Event, text: str) -> None:
        self._texts.setdefault(id(event), []).append(text)

    def _note_events(self) -> None:
        for call in self._contents.calls:
            self._note(call.began, f"calls {call.name}{f' ({call.line})' if call.line else ''}")
            if call.ended is not None:
                error = f" with {call.error}" if call.error else ""
                self._note(call.ended, f"{call.name} ends{error}")
        for _, arrow in self._contents.arrows:
            self._note_arrow(arrow)
        for waiting in self._contents.waiting:
            if waiting.queue == POSTED:
                self._note(waiting.began, f"posts a receive {self._wanted[id(waiting.began)]}")
            else:
                self._note(waiting.began, "no receive fits: the message waits as unexpected")
            if waiting.ended is not None:
                self._note(waiting.ended, "a receive and its message have met")
        for message in self._contents.messages:
            self._note_completions(message)
        for operation in self._contents.operations:
            for event, text in operation_notes(operation, self._contents.known):
                self._note(event, text)

    def _note_completions(self, message: Message) -> None:
        for event in message.events():
            if event.name == "COMPLETE":
                side = "send" if fields_of(event)["side"] == SEND else "receive"
                self._note(event, f"the {side} is complete")

    def _note_arrow(self, arrow: Arrow) -> None:
        what = f"{arrow.name} {byte_count(arrow.size)}" if arrow.size else arrow.name
        what = credit_words(arrow) or what
        begun = "begins" if arrow.kind is Kind.RDMA else "sends"
        inwards = arrow.source != arrow.sent.rank
        other = f"from rank {arrow.source}" if inwards else f"to rank {arrow.target}"
        self._note(arrow.sent, f"{begun} {what} {other}")
        if arrow.arrived is None:
            return
        if arrow.kind is Kind.RDMA:
            self._note(arrow.arrived, f"{what} is complete")
        else:
            self._note(arrow.arrived, f"{what} from rank {arrow.source} is here")
        if arrow.arrived is not arrow.sent:
            self._causes.append((arrow.sent, arrow.arrived))

    def _entry(self, event: Event) -> Entry:
        return Entry(Point(event.rank, event.time, text="; ".join(self._texts[id(event)])))

    def _row(self, event: Event | None) -> int | None:
        """The step of an event; None for one that has not come."""
        return None if event is None else self._entries[id(event)].row

    # as JSON has it

    def _steps(self) -> Iterator[dict[str, Any]]:
        place, before = 0.0, None
        for entry in sorted(self._entries.values(), key=lambda entry: entry.row):
            point = entry.point
            place += 0 if before is None else gap(point.time - before)
            before = point.time
            lane, text = self._lanes[point.rank], point.text
            yield {"lane": lane, "time": point.time, "place": round(place, 3), "text": text}

    def _message(self, message: Message) -> dict[str, Any]:
        return {
            "from": self._lanes[message.sender],
            "to": self._lanes[message.receiver],
            "tag": tag_text(message.tag),
            "internal": message.tag < 0,
            "size": byte_count(message.size),
            "protocol": message.decided or message.protocol,
            "family": _family(message),
            "label": f"{_family(message)} {byte_count(message.size)}",
        }

    def _operation(self, operation: Operation) -> dict[str, Any]:
        ends = {"from": self._lanes[operation.source], "to": self._lanes[operation.target]}
        return {**ends, **operation_values(operation, self._contents.known)}

    def _arrow(self, place: int, arrow: Arrow) -> dict[str, Any]:
        return {
            "message": place,
            "name": arrow.name,
            "kind": arrow.kind.name.lower(),
            "from": self._lanes[arrow.source],
            "to": self._lanes[arrow.target],
            "size": byte_count(arrow.size) if arrow.size else "",
            "start": self._row(arrow.sent),
            "end": self._row(arrow.arrived),
        }

    def _queued(self, waiting: Waiting) -> dict[str, Any]:
        message, family = waiting.message, ""
        if message is None or waiting.queue == POSTED:
            queue, text = "posted", self._wanted[id(waiting.began)]
        else:
            queue, family = "unexpected", _family(message)
            text = f"from rank {message.sender}, {tag_text(message.tag)}"
            text += f", {byte_count(message.size)}" if message.size else ""
        return {
            "lane": self._lanes[waiting.rank],
            "queue": queue,
            "start": self._row(waiting.began),
            "end": self._row(waiting.ended),
            "text": text,
            "family": family,
            "internal": fields_of(waiting.began).get("tag", ANY) < ANY,
        }

    def _outstanding(self, waits: Outstanding) -> dict[str, Any]:
        return {
            "lane": self._lanes[waits.rank],
            "queue": waits.queue,
            "start": self._row(waits.began),
            "end": self._row(waits.ended),
            "text": waits.text,
            "family": "",
            "internal": waits.internal,
        }

    def _span(self, span: Span) -> dict[str, Any]:
        return {
            "lane": self._lanes[span.rank],
            "name": span.name,
            "start": self._row(span.began),
            "end": self._row(span.ended),
            "of": span.of,
            **dict.fromkeys(("communicator", "line", "text", "error"), ""),
        }

    def _call(self, call: Call) -> dict[str, Any]:
        fields = call.fields
        number = f" #{fields['collective']}" if "collective" in fields else ""
        return {
            "lane": self._lanes[call.rank],
            "name": call.name,
            "start": self._row(call.began),
            "end": self._row(call.ended),
            "of": call.amount(),
            "communicator": f"{fields['comm']}{number}" if "comm" in fields else "",
            "line": call.line,
            "text": self._lines.get((call.rank, fields["file"], fields["line"]), ""),
            "error": call.error,
        }


def _counts(contents: Contents) -> str:
    """How much there is of what."""
    told = f"{len(contents.messages)} messages, {len(contents.calls)} calls"
    operations = len(contents.operations)
    return f"{told}, {operations} operations of GASNet" if operations else told


def _queues(contents: Contents) -> list[list[str]]:
    """What a page shows of the queues of a rank: name and title of each."""
    of_gasnet = [[name, title] for name, title in OPERATION_QUEUES] if contents.operations else []
    if of_gasnet and not (contents.messages or contents.waiting or contents.calls):
        return of_gasnet
    return [["posted", POSTED], ["unexpected", UNEXPECTED], *of_gasnet]


def _families(contents: Contents) -> Iterator[tuple[str, str]]:
    """Protocols and kinds of operations, with words; all of what there may be but odd ones."""
    families = {_family(message) for message in contents.messages}
    if contents.messages or not contents.operations:
        for name, _, text in (*FAMILIES, OTHER):
            if name != OTHER[0] or name in families:
                yield name, text
    used = {family_of_operation(each) for each in contents.operations}
    yield from ((name, text) for name, text in OPERATION_FAMILIES if name in used)


def _family(message: Message) -> str:
    return family_of(message.decided or message.protocol)


def _wanted_by(trace: JobTrace) -> Iterator[tuple[int, str]]:
    """What each receive that is posted takes, in words, by the id of its event.

    A receive names a rank of its communicator; the words have that rank's number in the world.
    """
    known = Communicators(trace.headers)
    for event in trace.events:
        if event.name == GROUP:
            known.take_event(event)
        elif event.name == "POST":
            fields = fields_of(event)
            peers = known.of(event.rank, fields["context"]).peers
            source, tag = fields.get("source", ANY), fields.get("tag", ANY)
            rank = peers[source] if 0 <= source < len(peers) else source
            whom = "any rank" if source == ANY else f"rank {rank}"
            yield id(event), f"from {whom}, {tag_text(tag)}"


def _title(trace: JobTrace) -> str:
    """The program, where all ranks run the same."""
    told = trace.job.get("ranks")
    ranks = told if isinstance(told, list) else []
    programs = {str(each.get("program", "")) for each in ranks if isinstance(each, dict)}
    only = programs.pop() if len(programs) == 1 else ""
    return only or f"a job of {len(trace.headers)} ranks"


def _facts(trace: JobTrace) -> list[str]:
    """Sentences on the job, and on what its trace lacks."""
    last = trace.events[-1].time if trace.events else 0
    told = [f"{len(trace.headers)} ranks, {duration(last)}"]
    code = trace.job.get("exit_code", 0)
    if code and isinstance(code, int):
        told.append(f"the job ended with exit code {code}")
    for rank, end in sorted(trace.ends.items()):
        if end.reason != FINALIZED:
            told.append(f"the events of rank {rank} end early: {end.reason}")
        if end.dropped:
            told.append(f"rank {rank} left out {end.dropped} events")
    return [*told, *trace.damage]
