"""Framing of the control messages between launcher, agents and ranks.

A frame is a fixed prefix, a small JSON header and a raw body. Sizes are capped before anything
is kept. Descriptors travel beside the first byte of their frame (`SCM_RIGHTS`), and the prefix
says how many there are. Nothing here reads, writes or waits: `frame_io.py` does.
"""

from __future__ import annotations

import json
import os
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from enum import IntEnum, unique
from typing import Any, Final, NamedTuple

AGENT_FD: Final = "OMPY_AGENT_FD"  # variable with the number of a rank's inherited descriptor
AGENT_NAME: Final = "ompy-agent"  # what the process of an agent is called
ATTACH_MS: Final = "OMPY_ATTACH_MS"  # variable: how long a rank waits there for the first answer
PLACE: Final = "OMPY_PLACE"  # variable of a bound rank: which it is of those it shares threads with
KEY_SIZE: Final = 32  # bytes; arbitrary: 256 bits of the kernel's random generator
_PREFIX: Final = struct.Struct("!2sBBBII")  # magic, version, kind, descriptors, header, body
_MAGIC: Final = b"\x9aM"  # arbitrary: no text starts like this
_VERSION: Final = 1  # arbitrary: the first
PREFIX_SIZE: Final = 13
assert _PREFIX.size == PREFIX_SIZE
HEADER_LIMIT: Final = 64 * 1024  # bytes; arbitrary: headers hold a few numbers and a name
BODY_LIMIT: Final = 16 * 1024 * 1024  # bytes; arbitrary: a job of thousands of ranks fits
DESCRIPTOR_LIMIT: Final = 4  # arbitrary: no message needs more
READ_SIZE: Final = 64 * 1024  # bytes; what a Linux pipe holds
OUTPUT_WINDOW: Final = 1024 * 1024  # bytes; arbitrary: what the launcher keeps per host at most


@unique
class Kind(IntEnum):
    """What a frame says. Launcher is L, agent is A, rank is R."""

    # L to A
    START = 1  # run your part of this job; body: key and job
    INPUT = 2  # standard input; body: data
    INPUT_END = 3
    CREDIT = 4  # so many bytes of output have been written
    SIGNAL = 5  # send this signal to all ranks
    END = 6  # end all ranks
    REPORT = 7  # have all MPI processes say where they are, by WHERE
    GROW = 9  # the job has one world more: ranks of it are yours to start; body: which
    DISCARD = 10  # end these ranks without a word: their world has not come about
    STAND = 12  # have these ranks say how they stand (`standing.py`); to R the same
    KILL = 13  # kill this rank; -1: all, and yourself, as if the host went down
    ANSWER = 11  # what a rank has asked; to R the same; body: what it is told
    BRANCH = 8  # start the agents below you, and pass on what comes for them; body: which
    # A to L
    STARTED = 16
    OUTPUT = 17  # body: whole lines of one stream of one rank
    STAGE = 18  # a rank got further
    EXITED = 19
    LOST = 20  # the MPI process of a rank went, its wrapper stayed
    ABORTED = 21  # body: reason
    UNSTARTED = 22  # a rank could not be started; body: reason
    INPUT_TAKEN = 23  # so many bytes of standard input went into the rank
    INPUT_CLOSED = 24  # the rank reads no more
    FINISHED = 25  # no process is left here
    READY = 26  # the first word of an agent that is no fork of the launcher: version, cores
    UNREADY = 27  # an agent below could not be started; body: why
    AGENT_GONE = 28  # an agent below has gone, and all below that unless it is said; body: why
    FETCH = 29  # what ranks of this host have committed, and will, is wanted by that one
    # both ways between L and A, in jobs of several hosts
    ALIVE = 31  # nothing but that
    MODEX = 32  # what ranks of one host committed; to A if it follows that host
    FENCED = 33  # all ranks there, or everywhere, have come to the fence
    DEPARTED = 34  # a rank elsewhere has gone; to R: a rank has gone; body: reason
    LEFT = 35  # ranks finalize (`machines/leave_news.py`); to R the same; body: which
    # R to A
    HELLO = 48  # over the inherited socket, with the socket to talk over
    COMMIT = 49
    LOOKUP = 50
    FENCE = 51
    MEMORY = 52
    DOORBELL = 53
    FINALIZED = 54
    ABORT = 55  # body: reason
    UNEXECUTABLE = 56  # from between fork and exec; body: reason
    FAULTS = 57  # how often each fault of the script has struck; passed on to L
    WATCH = 58  # ask over this path whether it carries packets (`runtime/probes`)
    UNWATCH = 59
    OUTAGES = 60  # which lasting faults of the script have begun
    PATHS = 61  # a path is lost; body: which rails there were; passed on to L
    RAIL = 62  # what became of a rail; passed on to L
    CARRIED = 63  # what rails have carried, where somebody watches; body: rows; passed on to L
    STILL = 79  # how this rank stands, which sleeps for long; body: that; passed on to L
    COUNTED = 78  # what performance variables say, where the job asks for them; passed on to L
    UNREACHABLE = 80  # where ranks may die: no path leads to this one any more; passed on to L
    WHERE = 73  # where this process is, when asked in short; body: more of it; passed on to L
    LEAVING = 74  # this rank has begun to finalize, and has told these ranks what it sent them
    ASK = 76  # asks the launcher something; passed on to L
    PLACED = 77  # where the ranks from this one on are, of worlds that were started later
    EXPENDABLE = 75  # whether the job goes on if this rank ends before it has finalized
    LEAVES = 72  # if this process is killed, files of shared memory with its number stay behind
    # A to R
    ADMITTED = 64  # body: key and job
    REPLY = 65
    REFUSED = 66  # body: reason
    PATH = 67  # what is known of a path that was to be watched


class ControlError(Exception):
    """What came over a control connection is not a control message, or one too large."""


class Frame(NamedTuple):
    """One control message.

    Attributes:
        kind: what it says.
        header: small values.
        body: raw bytes.
        descriptors: that came with it; the receiver owns them.
    """

    kind: Kind
    header: dict[str, Any]
    body: bytes
    descriptors: tuple[int, ...] = ()


def encode(
    kind: Kind, header: Mapping[str, Any] | None = None, body: bytes = b"", descriptors: int = 0
) -> bytes:
    """The bytes of a frame.

    Args:
        kind: what it says.
        header: values JSON can carry.
        body: anything.
        descriptors: how many travel with it.

    Raises:
        ControlError: it is larger than a receiver would take.
    """
    head = json.dumps(header, separators=(",", ":")).encode() if header else b""
    _check_sizes(kind, len(head), len(body), descriptors)
    return _PREFIX.pack(_MAGIC, _VERSION, kind, descriptors, len(head), len(body)) + head + body


def _check_sizes(kind: Kind, header: int, body: int, descriptors: int) -> None:
    if header > HEADER_LIMIT:
        raise ControlError(f"{kind.name}: header of {header} bytes, {HEADER_LIMIT} are allowed")
    if body > BODY_LIMIT:
        advice = "; fewer ranks, or a smaller environment, are less" if kind is Kind.START else ""
        raise ControlError(f"{kind.name}: body of {body} bytes, {BODY_LIMIT} are allowed{advice}")
    if descriptors > DESCRIPTOR_LIMIT:
        raise ControlError(f"{kind.name}: {descriptors} descriptors")


class Decoder:
    """Turns bytes and descriptors, split anyhow, into frames. Does no input or output."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._descriptors: deque[int] = deque()

    def feed(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Add what was received; the decoder owns the descriptors until their frame is out."""
        self._data += data
        self._descriptors.extend(descriptors)

    def next(self) -> Frame | None:
        """The next frame, or None while it is incomplete.

        Raises:
            ControlError: these bytes are no frame; the connection is of no more use.
        """
        if len(self._data) < PREFIX_SIZE:
            return None
        magic, version, number, count, header_size, body_size = _PREFIX.unpack_from(self._data)
        if magic != _MAGIC or version != _VERSION:
            raise ControlError(f"not a control message: it starts with {bytes(self._data[:13])!r}")
        try:
            kind = Kind(number)
        except ValueError:
            raise ControlError(f"unknown kind of control message {number}") from None
        _check_sizes(kind, header_size, body_size, count)
        if len(self._data) < PREFIX_SIZE + header_size + body_size:
            return None
        return self._take(kind, count, header_size, body_size)

    def _take(self, kind: Kind, count: int, header_size: int, body_size: int) -> Frame:
        if len(self._descriptors) < count:
            raise ControlError(f"{kind.name}: {count - len(self._descriptors)} descriptors missing")
        body_start = PREFIX_SIZE + header_size
        header = _parse_header(kind, bytes(self._data[PREFIX_SIZE:body_start]))
        body = bytes(self._data[body_start : body_start + body_size])
        del self._data[: body_start + body_size]
        return Frame(kind, header, body, tuple(self._descriptors.popleft() for _ in range(count)))

    @property
    def partial(self) -> bool:
        """Whether a frame has begun that is not complete."""
        return bool(self._data)

    def close(self) -> None:
        """Close the descriptors nobody took."""
        while self._descriptors:
            os.close(self._descriptors.popleft())


def _parse_header(kind: Kind, text: bytes) -> dict[str, Any]:
    if not text:
        return {}
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ControlError(f"{kind.name}: header is not JSON: {problem}") from None
    if not isinstance(header, dict):
        raise ControlError(f"{kind.name}: header is no object")
    return header
