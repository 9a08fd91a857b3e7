"""Which send belongs to which receive.

Messages with equal source, target, communicator and tag match in the order of their sending, and
receives that take such messages match in the order of their posting. So the k-th belongs to the
k-th; from a receive on of which it is not known what it got, nothing is known that it might have
taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from ompy.check.logs import Record
from ompy.data.constants import ANY_SOURCE, ANY_TAG


class Send(NamedTuple):
    """A message that a rank sends.

    Attributes:
        rank, place: of the job, and of the entry in its record.
        source: the sender's rank in the communicator.
    """

    rank: int
    place: int
    site: int
    call: str
    key: str
    source: int
    target: int
    tag: int
    signature: Any
    mode: str
    request: int


class Receive(NamedTuple):
    """A receive, and what it got: source, tag, bytes, what is known (`record.py`), digests.

    Attributes:
        rank, place: as of a send.
        over: index of the entry by which it is complete; -1 if it never was.
        source, tag: that were asked for.
        got: None where it is not known.
        room: where its buffer is named, where that is elsewhere: site and call.
    """

    rank: int
    place: int
    site: int
    call: str
    key: str
    source: int
    tag: int
    signature: Any
    request: int
    over: int
    got: tuple[Any, ...] | None
    room: tuple[int, str]

    def takes(self, source: int, tag: int) -> bool:
        """Whether it could take a message."""
        return self.source in {ANY_SOURCE, source} and self.tag in {ANY_TAG, tag}


class Messages(NamedTuple):
    """All messages of a job.

    Attributes:
        pairs: sends with their receives.
        sends: all of them, by rank of the job.
        receives: likewise.
        unmatched: sends that no receive took, where all is known.
        receive_of: by (rank, place) of a send.
        send_of: by (rank, place) of a receive.
    """

    pairs: list[tuple[Send, Receive]]
    sends: dict[int, list[Send]]
    receives: dict[int, list[Receive]]
    unmatched: list[Send]
    receive_of: dict[tuple[int, int], Receive]
    send_of: dict[tuple[int, int], Send]


def messages_of(records: Mapping[int, Record]) -> Messages:
    """Match the messages of all records."""
    sends = {rank: _sends(record) for rank, record in records.items()}
    receives = {rank: _receives(record) for rank, record in records.items()}
    complete = all(record.complete for record in records.values())
    targets = _targets(records)
    waiting: dict[tuple[str, int, int, int], list[Send]] = defaultdict(list)
    for each in sends.values():
        for send in each:
            target = targets.get((send.key, send.rank, send.target))
            if target is not None:
                waiting[send.key, send.source, target, send.tag].append(send)
    pairs: list[tuple[Send, Receive]] = []
    left = []
    for stream, sent in waiting.items():
        key, source, target, tag = stream
        taken = _stream(receives.get(target, []), key, source, tag)
        pairs += zip(sent, taken.matched, strict=False)
        if complete and taken.whole:
            left += sent[len(taken.matched) :]
    receive_of = {(send.rank, send.place): receive for send, receive in pairs}
    send_of = {(receive.rank, receive.place): send for send, receive in pairs}
    return Messages(pairs, sends, receives, left, receive_of, send_of)


class _Stream(NamedTuple):
    matched: list[Receive]
    whole: bool


def _stream(receives: list[Receive], key: str, source: int, tag: int) -> _Stream:
    """The receives that took the messages of one source and tag, in their order."""
    matched: list[Receive] = []
    for receive in receives:
        if receive.key != key:
            continue
        if receive.got is None:
            if receive.takes(source, tag):
                return _Stream(matched, whole=False)
        elif receive.got[:2] == (source, tag):
            matched.append(receive)
    return _Stream(matched, whole=True)


def _targets(records: Mapping[int, Record]) -> dict[tuple[str, int, int], int]:
    """Ranks of the job by communicator, sender's rank in the job, and target.

    A rank of an intercommunicator means somebody else in each of its groups.
    """
    found = {}
    for record in records.values():
        for comm in record.comms.values():
            if comm.key:
                for place, member in enumerate(comm.members):
                    found[comm.key, record.rank, place] = member
    return found


def _sends(record: Record) -> list[Send]:
    found = []
    for index, event in enumerate(record.events):
        if event[0] == "send":
            site, call, number, *rest = event[1:]
            comm = record.comms.get(number)
            if comm is not None and comm.key:
                found.append(Send(record.rank, index, site, call, comm.key, comm.rank, *rest))
    return found


def _receives(record: Record) -> list[Receive]:
    later: dict[int, tuple[int, Any]] = {}
    taken: dict[int, tuple[Any, ...]] = {}
    cancelled = set()
    for index, event in enumerate(record.events):
        if event[0] == "got":
            later[event[1]] = (index, tuple(event[2]))
        elif event[0] == "cancel":
            cancelled.add(event[1])
        elif event[0] == "taken":
            taken[event[1]] = event[2:]
    found = []
    for index, event in enumerate(record.events):
        if event[0] != "recv":
            continue
        site, call, number, source, tag, signature, request, got = event[1:]
        comm = record.comms.get(number)
        over, room = index, (site, call)
        if request in taken:
            room, signature, now = taken[request][:2], *taken[request][2:]
            got = now or got
        elif got is None:
            over, got = later.get(request, (-1, None))
        if comm is None or not comm.key or (got is None and request in cancelled):
            continue
        receive = Receive(
            record.rank, index, site, call, comm.key, source, tag, signature, request, over,
            None if got is None else tuple(got), room,
        )  # fmt: skip
        found.append(receive)
    return found
