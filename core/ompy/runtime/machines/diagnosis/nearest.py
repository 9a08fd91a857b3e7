"""What is almost what a rank waits for that never goes on: messages, receives that do not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ompy.frameworks.needs import PROBE, RECEIVE, SEND
from ompy.runtime.machines.diagnosis.deadlock import Need, Said, Waits

_SENDS: Final = re.compile(r"\b[bsr]?send(recv\w*)?\(", re.IGNORECASE)  # blocking ones


def nearest_misses(said: Mapping[int, Said], waits: Waits) -> list[str]:
    """What is almost what a rank waits for, in sentences.

    Args:
        said: by rank.
        waits: of that rank.
    """
    found: dict[str, None] = {}
    if not any(need["what"] in {RECEIVE, PROBE} for need in waits.needs):
        found = dict.fromkeys(_left_messages(said, waits.rank))
    for need in waits.needs:
        if need["what"] in {RECEIVE, PROBE}:
            for line in _near_messages(said, waits.rank, need):
                found[line] = None
        elif need["what"] == SEND:
            for line in _near_receives(said, waits.rank, need):
                found[line] = None
    return list(found)


def _left_messages(said: Mapping[int, Said], rank: int) -> Iterator[str]:
    """Messages that are here while the rank waits for no message."""
    for message in said.get(rank, {}).get("unmatched", ()):
        _, source, _, tag, size = message
        if tag >= 0:
            here = f"{size} bytes from rank {source} with tag {tag} are here, and not received"
            yield here + _sent_at(said, rank, message)


def _near_messages(said: Mapping[int, Said], rank: int, need: Need) -> Iterator[str]:
    """Messages that are here, and are not the one."""
    for message in said[rank]["unmatched"]:
        comm, source, _, tag, size = message
        if tag < 0:
            continue
        at = _sent_at(said, rank, message)
        if comm != need["comm"]:
            said_of = f"{size} bytes from rank {source} with tag {tag}"
            yield f"{said_of} are here, in another communicator{at}"
        elif source not in need["ranks"]:
            yield f"{size} bytes with tag {tag} are here, but from rank {source}{at}"
        else:
            yield f"{size} bytes from rank {source} are here, but with tag {tag}{at}"


def _sent_at(said: Mapping[int, Said], rank: int, message: Sequence[int]) -> str:
    """Where a message comes from, if its sender still waits for it: its line is that one's.

    A message that was buffered has left no line, and a call record (`--check`) has all of them.
    """
    comm, source, sequence, _, _ = message
    for wait in said.get(source, {}).get("waits", ()):
        for need in wait["needs"] or ():
            same = need["what"] == SEND and (need["comm"], need["sequence"]) == (comm, sequence)
            if same and rank in need["ranks"]:
                place = wait["at"]
                if not place:
                    return ""
                how = "sent" if _SENDS.search(place["text"]) else "its sender waits for that"
                return f"; {how} at {place['file']}:{place['line']}"
    return ""


def _near_receives(said: Mapping[int, Said], rank: int, need: Need) -> Iterator[str]:
    """Receives that the other has posted, and that are not for it."""
    for other in need["ranks"]:
        for wait in said.get(other, {}).get("waits", ()):
            for theirs in wait["needs"] or ():
                if theirs["what"] not in {RECEIVE, PROBE}:
                    continue
                if rank not in theirs["ranks"]:
                    yield f"rank {other} waits for {theirs['text']}"
                elif theirs["comm"] != need["comm"] or theirs["tag"] != need["tag"]:
                    yield f"rank {other} waits for {theirs['text']}, this has tag {need['tag']}"
