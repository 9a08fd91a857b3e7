"""What the entries of a recording say: each as a tuple with names, to bytes and back. Pure."""

from __future__ import annotations

from struct import Struct, error
from typing import Any, Final, NamedTuple

from ompy.replay.entries import RecordingError


class Prefix(NamedTuple):
    """What each event begins with.

    Attributes:
        site: number of the line of the program; 0 for none.
        calls: sends, and receives that name source and tag, before it; the last 32 bits.
        digest: of their peers and tags, in their order.
    """

    site: int
    calls: int
    digest: int


class File(NamedTuple):
    """A file of the program. `check` is of its content, 0 if it could not be read."""

    number: int
    check: int
    name: str


class Site(NamedTuple):
    """A line of the program."""

    number: int
    file: int
    line: int
    function: str


class Comm(NamedTuple):
    """A communicator, when an event first names it: numbers count up from 1."""

    number: int
    context: int
    rank: int
    size: int
    name: str


class Looked(NamedTuple):
    """A receive, or a probe that has found something.

    Attributes:
        prefix: of the event.
        how: one of `HOW`.
        comm: number.
        wanted_source, wanted_tag: as the program has given them.
        source, tag, length: of the message.
    """

    prefix: Prefix
    how: int
    comm: int
    wanted_source: int
    wanted_tag: int
    source: int
    tag: int
    length: int


class NothingFound(NamedTuple):
    """A probe that has found nothing, `times` times in a row."""

    prefix: Prefix
    how: int
    comm: int
    wanted_source: int
    wanted_tag: int
    times: int


class Posted(NamedTuple):
    """A nonblocking receive from ANY_SOURCE or with ANY_TAG was begun: the rank's `number`th."""

    prefix: Prefix
    comm: int
    number: int
    wanted_source: int
    wanted_tag: int


class Matched(NamedTuple):
    """What such a receive has got, written when it was complete."""

    number: int
    source: int
    tag: int
    length: int


class Cancelled(NamedTuple):
    """A receive was to be cancelled: was it in time?"""

    prefix: Prefix
    number: int
    done: int


class Completed(NamedTuple):
    """A call that tests, or waits for any or some, has said that these are complete.

    Attributes:
        prefix: of the event.
        call: one of `CALLS`.
        requests: how many it was given; of Parrived the partition.
        places: of the complete ones; empty where the call is about all of them.
    """

    prefix: Prefix
    call: int
    requests: int
    places: tuple[int, ...]


class NotYet(NamedTuple):
    """A test has said no, `times` times in a row."""

    prefix: Prefix
    call: int
    requests: int
    times: int


class Time(NamedTuple):
    """What Wtime gave."""

    prefix: Prefix
    seconds: float


class Note(NamedTuple):
    """The program has done what cannot be replayed: `scope` is one of ALONE, ORDER and NEVER."""

    site: int
    scope: int
    text: str


class Locked(NamedTuple):
    """A lock of a window was had.

    Attributes:
        prefix: of the event.
        context: id of the window's communicator.
        target: rank of the job whose memory it is.
        exclusive: whether nobody else may have it.
        since: when, by the host's clock, in nanoseconds.
    """

    prefix: Prefix
    context: int
    target: int
    exclusive: int
    since: int


class Unlocked(NamedTuple):
    """It was given back."""

    prefix: Prefix
    context: int
    target: int


class Thread(NamedTuple):
    """A thread of the program, when it first makes a call that is not the main one's.

    Attributes:
        number: counts up from 1.
        path: whose child it is, as `threads/names.py` has it.
    """

    number: int
    path: str


class Turn(NamedTuple):
    """From here on it is another thread that begins things and is told of them.

    Attributes:
        prefix: the line of its call; calls and digest are those of the thread before.
        thread: number of it.
    """

    prefix: Prefix
    thread: int


class Answered(NamedTuple):
    """The launcher has answered what only it knows.

    Attributes:
        prefix: of the event.
        question: one of `QUESTIONS`.
        code: class of the error; 0 for none.
        text: the answer, or what the error says.
    """

    prefix: Prefix
    question: int
    code: int
    text: str


class Returned(NamedTuple):
    """A thread has what it waited for; written only where there are several."""

    prefix: Prefix


class Raised(NamedTuple):
    """An exception has ended the program, or a call of Abort has: which."""

    prefix: Prefix
    what: str


class Ended(NamedTuple):
    """The rank has begun to finalize."""

    prefix: Prefix


Told = Looked | NothingFound | Posted | Cancelled | Completed | NotYet | Time
Event = Told | Locked | Unlocked | Answered | Turn | Returned | Raised | Ended
Entry = Event | File | Site | Comm | Matched | Note | Thread

# values of a note's scope
ALONE: Final = 1  # a rank cannot run it without the others
ORDER: Final = 2  # a replay runs it, but not surely in the same order
NEVER: Final = 3
HOW: Final = ("Recv", "Probe", "Mprobe", "Iprobe", "Improbe")
RECV, PROBE, MPROBE, IPROBE, IMPROBE = range(len(HOW))
CALLS: Final = (
    "Test", "test", "Get_status", "get_status", "Testany", "testany", "Get_status_any",
    "get_status_any", "Testall", "testall", "Get_status_all", "get_status_all", "Testsome",
    "testsome", "Get_status_some", "get_status_some", "Waitany", "waitany", "Waitsome", "waitsome",
    "Win.Test", "Parrived",
)  # fmt: skip

QUESTIONS: Final = (
    "open", "close", "publish", "unpublish", "lookup", "accept", "connect", "spawn", "made",
)  # fmt: skip

U32: Final = 0xFFFFFFFF  # values of 32 bits
_PLACE: Final = Struct("<I")
# tag of an entry: its class, the numbers in it. A prefix is three of them, text or places follow
_FORMS: Final[dict[int, tuple[Any, Struct]]] = {
    1: (File, Struct("<II")),
    2: (Site, Struct("<III")),
    3: (Comm, Struct("<IIII")),
    4: (Matched, Struct("<IiiQ")),
    5: (Note, Struct("<IB")),
    6: (Thread, Struct("<I")),
    16: (Looked, Struct("<BHIIIIiiiiIQ")),  # in whole words
    17: (NothingFound, Struct("<IIIBIiiQ")),
    18: (Posted, Struct("<IIIIIii")),
    19: (Cancelled, Struct("<IIIIB")),
    20: (Completed, Struct("<IIIBI")),
    21: (NotYet, Struct("<IIIBIQ")),
    22: (Time, Struct("<IIId")),
    23: (Ended, Struct("<III")),
    24: (Raised, Struct("<III")),
    25: (Locked, Struct("<IIIIIBQ")),
    26: (Unlocked, Struct("<IIIII")),
    27: (Turn, Struct("<IIII")),
    28: (Returned, Struct("<III")),
    29: (Answered, Struct("<IIIBI")),
}
LOOKED_TAG: Final = 16  # arbitrary, as `_FORMS` has it; `EntryWriter` writes it
_MATCHED_TAG: Final = 4  # arbitrary, likewise
_MATCHED: Final = Struct("<BIiiQ")  # as `_FORMS` has it, with the tag
_TAGS: Final = {kind: (bytes((tag,)), form) for tag, (kind, form) in _FORMS.items()}
_FIRST_EVENT: Final = 16  # values of tags below are no events
_WITH_TEXT: Final = (File, Site, Comm, Note, Thread)
_PREFIX: Final = len(Prefix._fields)


def bytes_of(entry: Entry) -> bytes:
    """The body of an entry."""
    kind = type(entry)
    tag, form = _TAGS[kind]
    fields: tuple[Any, ...] = tuple(entry)
    if kind in _WITH_TEXT:
        text: bytes = fields[-1].encode("utf-8", "surrogateescape")
        return tag + form.pack(*fields[:-1]) + text
    if kind is Looked:
        (site, calls, digest), how, *numbers, length = fields
        return tag + form.pack(how, 0, site, calls, digest, *numbers, 0, length)
    if kind is Matched:
        return tag + form.pack(*fields)
    if kind in (Raised, Answered):
        packed = form.pack(*fields[0], *fields[1:-1])
        return tag + packed + bytes(fields[-1], "utf-8", "surrogateescape")
    if kind is Completed:
        places = b"".join(map(_PLACE.pack, fields[-1]))
        return tag + form.pack(*fields[0], *fields[1:-1]) + places
    return tag + form.pack(*fields[0], *fields[1:])


def pack_matched(*numbers: int) -> bytes:
    """The body of a `Matched`, from its numbers in their order."""
    return _MATCHED.pack(_MATCHED_TAG, *numbers)


def entry_of(body: bytes | memoryview) -> Entry:
    """The entry of a body.

    Raises:
        RecordingError: it is none that this version knows.
    """
    kind, form = _FORMS.get(body[0] if len(body) else 0, (None, None))
    if kind is None or form is None:
        raise RecordingError("there is an entry of a kind that this ompy does not know")
    try:
        numbers = form.unpack_from(body, 1)
        rest = body[1 + form.size :]
        if kind in _WITH_TEXT:
            return kind(*numbers, bytes(rest).decode("utf-8", "surrogateescape"))  # type: ignore[no-any-return]
        if kind is Completed:
            places = tuple(each[0] for each in _PLACE.iter_unpack(rest))
            call, requests = numbers[_PREFIX:]
            return Completed(Prefix(*numbers[:_PREFIX]), call, requests, places)
        if kind in (Raised, Answered):
            text = bytes(rest).decode("utf-8", "surrogateescape")
            return kind(Prefix(*numbers[:_PREFIX]), *numbers[_PREFIX:], text)  # type: ignore[no-any-return]
        if len(rest):
            raise RecordingError(f"there is an entry {kind.__name__} that is too long")
        if kind is Matched:
            return Matched(*numbers)
        if kind is Looked:
            how, _, site, calls, digest, *others, _, length = numbers
            return Looked(Prefix(site, calls, digest), how, *others, length)  # type: ignore[call-arg]
        return kind(Prefix(*numbers[:_PREFIX]), *numbers[_PREFIX:])  # type: ignore[no-any-return]
    except (error, UnicodeDecodeError, TypeError) as problem:
        raise RecordingError(
            f"there is an entry {kind.__name__} that is not whole: {problem}"
        ) from None


def is_event(entry: Entry) -> bool:
    """Whether an entry is something that the program was told."""
    return _TAGS[type(entry)][0][0] >= _FIRST_EVENT


def counts_on(entry: Entry, following: Entry) -> bool:
    """Whether an entry goes on with the one before: the same no, some times more."""
    kind = type(entry)
    if kind not in (NothingFound, NotYet) or kind is not type(following):
        return False
    return tuple(entry)[:-1] == tuple(following)[:-1]


def folded(digest: int, kind: int, peer: int, tag: int) -> int:
    """A digest with one more call in it.

    Args:
        digest: of those before.
        kind: 1 for a send, 2 for a receive.
        peer: rank in the communicator.
        tag: of the message.
    """
    # arbitrary odd factors: each bit of a peer and a tag has its part in many
    return (digest * 33 + peer * 65599 + tag * 31 + kind * 16777259 + 1) & U32
