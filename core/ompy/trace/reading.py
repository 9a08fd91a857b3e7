"""Lines of a rank's trace file, taken in: what is none is damage, and nothing behind it counts.

All that the tools later do with an event rests on what is checked here: numbers are whole and have
64 bits, texts can be written, and the events that messages are made of have what these need.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, NamedTuple, NoReturn

from ompy.trace.communicators import members_of
from ompy.trace.gasnet_events import NUMBERS as GASNET_NUMBERS
from ompy.trace.gasnet_events import is_gasnet, needs
from ompy.trace.sink import Event

FORMAT: Final = "ompy-trace"
VERSION: Final = 1
LINE_MAX: Final = 1 << 20  # bytes; arbitrary: some thousand times what an event takes
DEEPEST: Final = 16  # lists and objects in each other; arbitrary: ours have two or three
NUMBER_MAX: Final = 1 << 63  # C: int64_t, which is what a rank's clock and counts are
PACKET_MAX: Final = 1 << 16  # RFC 791, 768, 9293: bytes of a packet, and ports
RANK_MAX: Final = 1 << 31  # C: int, which is what a rank is in MPI
SIDES: Final = ("send", "receive")
# of events that messages are made of: what is a number, what is a text
_NUMBERS: Final = frozenset(
    {"context", "source", "peer", "posted", "sequence", "tag", "size", "offset", "payload"}
    | {"restart", "receive", "send", "room", "count"}
)
_TEXTS: Final = frozenset({"side", "protocol", "step", "rail", "rails", "what"})
_RANKS: Final = frozenset({"source", "peer"})
# what an event of a message has besides, by its name
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "PROTOCOL": ("size", "protocol"),
    "READ": ("size", "offset"),
    "WRITE": ("size", "offset"),
    "POST": ("context", "posted"),
    "RAIL": (),
    "PENDING": ("count",),
    "ADD_PROC": (),
}
# of calls: layers, what is a text, what an event has at least
CALL_LAYERS: Final = ("api", "coll", "coll.sm")
_CALL_TEXTS: Final = frozenset(
    {"call", "comm", "type", "op", "file", "function", "error", "text"}
    | {"operation", "component", "algorithm", "members", "remote"}
)
_CALL_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "CALL": ("number", "call", "file", "line", "function"),
    "RETURN": ("number",),
    "GROUP": ("context", "comm", "members"),
    "LINE": ("file", "line", "text"),
    "SERVED": ("operation", "component", "algorithm", "context", "collective", "tag"),
    "STEP": ("context", "tag", "step"),
    "SHOW": ("context", "collective", "number", "bytes"),
    "NO_ROOM": ("context", "collective", "number", "bytes"),
    "RESULT": ("context", "collective", "number", "bytes"),
    "READ": ("context", "collective", "number", "bytes", "owner"),
    "DONE": ("context", "collective", "number"),
}


# of what was sent: what is a text, what an event has at least
WIRE: Final = "wire"
_WIRE_TEXTS: Final = frozenset({"protocol", "via", "rail", "host", "to", "data"})
_WIRE_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "FLOW": ("flow", "protocol", "via", "rail", "host", "port"),
    "SENT": ("flow", "size", "data"),
}


class DamageError(ValueError):
    """A line is none of a trace; the text says what is wrong with it."""


class RankHeader(NamedTuple):
    """Whose events a file holds, and when they were.

    Attributes:
        rank: world rank.
        node: index of its host. Ranks of one host share CLOCK_MONOTONIC.
        host: its name.
        monotonic: nanoseconds of the rank's clock at wire-up.
        wall: nanoseconds of the wall clock at the same moment.
    """

    rank: int
    node: int = 0
    host: str = ""
    monotonic: int = 0
    wall: int = 0


class Ended(NamedTuple):
    """How a rank's trace ended.

    Attributes:
        reason: as `finalize` or `SIGTERM`; `killed` when it was cut off.
        dropped: events beyond the limit.
    """

    reason: str
    dropped: int = 0


def open_regular(path: str) -> IO[bytes]:
    """A file to read; what would have to be waited for is none.

    Raises:
        OSError: it cannot be read.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(None, "it is no plain file")
    return open(file, "rb")


def whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Its lines; what is left behind the last newline is none.

    Raises:
        DamageError: one is too long.
    """
    while line := file.readline(LINE_MAX):
        if not line.endswith(b"\n"):
            if len(line) == LINE_MAX:
                raise DamageError(f"it is longer than {LINE_MAX} bytes")
            return
        yield line


def parse_json(line: bytes) -> Any:
    """The JSON value of a line.

    Raises:
        DamageError: there is none, or one that could not be shown.
    """
    try:
        # given bytes, it would take halves of surrogate pairs
        value = json.loads(line.decode(), parse_constant=_no_number)
        if b"\\u" in line:  # half of a surrogate pair can be written nowhere
            json.dumps(value, ensure_ascii=False).encode()
        if line.count(b"[") + line.count(b"{") > DEEPEST:
            _see_depth(value, DEEPEST)
    except DamageError:
        raise
    except UnicodeError:
        raise DamageError("it is no text") from None
    except (ValueError, RecursionError) as problem:
        raise DamageError(f"it is no JSON: {problem}") from None
    return value


def _see_depth(value: object, left: int) -> None:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not left:
        raise DamageError("it is nested too deep")
    for each in inner:
        _see_depth(each, left - 1)


def _no_number(name: str) -> NoReturn:
    raise DamageError(f"it is no JSON: {name}")


def read_number(value: object, what: str, most: int = NUMBER_MAX) -> int:
    """A whole number of less than `most`.

    Raises:
        DamageError: it is none.
    """
    if type(value) is not int or not -most <= value < most:
        raise DamageError(f"{what} is no whole number, or one too large")
    return value


def read_text(value: object, what: str) -> str:
    """A text.

    Raises:
        DamageError: it is none.
    """
    if type(value) is not str:
        raise DamageError(f"{what} is no text")
    return value


def header_of(value: Any, rank: int) -> RankHeader:
    """The header of the file of `rank`.

    Raises:
        DamageError: it is none, or another's.
    """
    if type(value) is not dict or value.get("format") != FORMAT:
        raise DamageError("it does not begin a trace")
    if value.get("version") != VERSION or type(value["version"]) is not int:
        raise DamageError(f"it is of another version of ompy's traces than {VERSION}")
    found = RankHeader(
        read_number(value.get("rank"), "rank", RANK_MAX),
        read_number(value.get("node"), "node", RANK_MAX),
        read_text(value.get("host"), "host"),
        read_number(value.get("monotonic"), "monotonic"),
        read_number(value.get("wall"), "wall"),
    )
    if found.rank != rank:
        raise DamageError(f"it is of rank {found.rank}")
    return found


def end_of(value: dict[str, Any]) -> Ended:
    """How a trace ended, of its last line.

    Raises:
        DamageError: the line does not say it.
    """
    dropped = read_number(value.get("dropped"), "dropped")
    if dropped < 0:
        raise DamageError("dropped is less than 0")
    return Ended(read_text(value.get("end"), "end"), dropped)


def event_of(value: Any, rank: int) -> Event:
    """An event.

    Raises:
        DamageError: it is none.
    """
    if type(value) is not list or len(value) != 4:
        raise DamageError("it is no event")
    time, layer, name, fields = value
    read_number(time, "time")
    read_text(layer, "layer")
    read_text(name, "name")
    if type(fields) is not dict:
        raise DamageError("its fields are none")
    if layer in CALL_LAYERS:
        _check_call(name, fields)
    elif layer == WIRE:
        _check_wire(name, fields)
    elif is_gasnet(layer):
        _check_operation(name, fields)
    elif "side" in fields or name in ("POST", "RAIL", "PENDING", "ADD_PROC"):
        _check_message(name, fields)
    return Event(time, rank, layer, name, tuple(fields.items()))


def _check_wire(name: str, fields: dict[str, Any]) -> None:
    """An event of what was sent."""
    for key, value in fields.items():
        if key in _WIRE_TEXTS:
            read_text(value, key)
        elif read_number(value, key) < 0 and key != "peer":
            raise DamageError(f"{key} is less than 0")
    missing = [key for key in _WIRE_NEEDED.get(name, ()) if key not in fields]
    if missing:
        raise DamageError(f"a {name} has no {missing[0]}")
    for key in {"port", "to_port", "size"} & fields.keys():
        read_number(fields[key], key, PACKET_MAX)


def _check_operation(name: str, fields: dict[str, Any]) -> None:
    """An event that GASNet's operations are made of."""
    numbers, texts = needs(name)
    missing = [key for key in (*numbers, *texts) if key not in fields]
    if missing:
        raise DamageError(f"a {name} has no {missing[0]}")
    for key, value in fields.items():
        if key in GASNET_NUMBERS:
            read_number(value, key, RANK_MAX if key in _RANKS else NUMBER_MAX)
        elif key in texts:
            read_text(value, key)


def _check_call(name: str, fields: dict[str, Any]) -> None:
    """An event that calls are made of, or their steps."""
    for key, value in fields.items():
        if key in _CALL_TEXTS:
            read_text(value, key)
        else:
            read_number(value, key)
    if fields.get("requests", 0) < 0:
        raise DamageError("requests is less than 0")
    for key in ("members", "remote"):
        try:
            members_of(fields.get(key, ""))
        except ValueError as problem:
            raise DamageError(f"{key}: {problem}") from None
    needed = _CALL_NEEDED.get(name, ())
    if name == "CALL" and ("collective" in fields or "internal" in fields):
        needed += ("context", "collective")
    missing = [key for key in needed if key not in fields]
    if missing:
        raise DamageError(f"a {name} has no {missing[0]}")


def _check_message(name: str, fields: dict[str, Any]) -> None:
    """An event that messages are made of."""
    for key, value in fields.items():
        if key in _NUMBERS:
            read_number(value, key, RANK_MAX if key in _RANKS else NUMBER_MAX)
        elif key in _TEXTS:
            read_text(value, key)
    if fields.get("side", "send") not in SIDES:
        raise DamageError(f"side is none of {', '.join(SIDES)}")
    needed = _NEEDED.get(name, ())
    if "sequence" in fields and "side" in fields:
        needed += ("context", "source", *(("peer",) if fields["side"] == "send" else ()))
    missing = [key for key in needed if key not in fields]
    if missing:
        raise DamageError(f"a {name} has no {missing[0]}")
