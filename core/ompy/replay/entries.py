"""The file format of a recording: a header and entries, each with a checksum that goes on.

Pure: bytes in, bytes out. README.md beside this file says why it is so.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

VERSION: Final = 2
MAGIC: Final = b"ompyrec\x00"  # arbitrary: no text begins so
EVENTS: Final = 1  # kind of file
DATA: Final = 2
KINDS: Final = {EVENTS: "events", DATA: "data"}
_HEADER: Final = Struct("<8sHHII8sI")  # the checksum last
HEADER_SIZE: Final = _HEADER.size
HEAD: Final = Struct("<II")  # before an entry: length and checksum; places are multiples of it
OVER: Final = bytes(HEAD.size)  # behind the last entry that was written
# bytes that a killed rank may leave behind the end, of an event it was writing; arbitrary: more
# than any has. Of a message it may be all of it
TORN_MAX: Final = 1 << 16
# first byte of the last entry of every file; above those of all others
END: Final = 0xFF


class RecordingError(Exception):
    """A recording cannot be used; the text says which file, where and why."""


class Header(NamedTuple):
    """What a file is.

    Attributes:
        kind: EVENTS or DATA.
        rank: whose.
        size: ranks of the job.
        job: 8 bytes that name it.
    """

    kind: int
    rank: int
    size: int
    job: bytes


def header_bytes(header: Header) -> bytes:
    """The beginning of a file."""
    fields = (MAGIC, VERSION, header.kind, header.rank, header.size, header.job)
    bare = _HEADER.pack(*fields, 0)
    return _HEADER.pack(*fields, crc32(bare))


def read_header(data: bytes | memoryview, name: str) -> Header:
    """What the beginning of a file says.

    Raises:
        RecordingError: it is none of a recording, of another version, or damaged.
    """
    if len(data) < HEADER_SIZE:
        raise RecordingError(f"{name}: truncated: {len(data)} bytes, less than its header has")
    magic, version, kind, rank, size, job, check = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise RecordingError(
            f"{name}: not a file of ompy-run --record, or damaged at its beginning"
        )
    bare = _HEADER.pack(magic, version, kind, rank, size, job, 0)
    if check != crc32(bare):
        raise RecordingError(f"{name}: damaged: the checksum of its header is wrong")
    if version != VERSION:
        raise RecordingError(
            f"{name}: its format has version {version}, this ompy reads {VERSION}: "
            "replay it with the ompy that recorded it"
        )
    return Header(kind, rank, size, job)


def first_checksum(header: Header) -> int:
    """What the checksum of the first entry goes on from."""
    return crc32(header_bytes(header))


def checksum(body: bytes | memoryview, before: int) -> int:
    """Of an entry, behind one with the checksum `before`. Never 0, which is the end's."""
    return crc32(body, before) or 1


class Entries(NamedTuple):
    """The entries of a file.

    Attributes:
        header: what the file is.
        bodies: of the entries, END left out; views of the file.
        complete: END was there: the rank has ended by itself.
    """

    header: Header
    bodies: list[memoryview]
    complete: bool


def read_entries(data: bytes | memoryview, name: str) -> Entries:
    """All entries of a file.

    Args:
        data: the file.
        name: of it, for errors.

    Raises:
        RecordingError: it is damaged or truncated, or not of this format.
    """
    header = read_header(data, name)
    bodies: list[memoryview] = []
    complete = False
    for at, body in _walk(memoryview(data), header, name):
        if complete:
            raise RecordingError(f"{name}: damaged at byte {at}: it goes on behind its end")
        if body[:1] == bytes((END,)):
            complete = True
        else:
            bodies.append(body)
    return Entries(header, bodies, complete)


def _walk(data: memoryview, header: Header, name: str) -> Iterator[tuple[int, memoryview]]:
    """Place and body of each entry, END too."""
    at, last, check = HEADER_SIZE, b"", first_checksum(header)
    torn = TORN_MAX if header.kind == EVENTS else len(data)
    while at < len(data) or last != bytes((END,)):
        if at + HEAD.size > len(data):
            raise RecordingError(f"{name}: truncated: it ends at byte {len(data)}, in an entry")
        length, stored = HEAD.unpack_from(data, at)
        if not length and not stored:  # where a killed rank was; behind it may be half a body
            if last == bytes((END,)) or bytes(data[at + torn :]).strip(b"\0"):
                raise RecordingError(f"{name}: damaged at byte {at}: it goes on behind its end")
            return
        start, end = at + HEAD.size, at + HEAD.size + length
        following = end + -end % HEAD.size
        if not length or not stored:
            raise RecordingError(f"{name}: damaged at byte {at}: no entry begins so")
        if following > len(data):
            raise RecordingError(
                f"{name}: truncated or damaged: the entry at byte {at} has {length} bytes, "
                f"the file only {len(data) - start} more"
            )
        body = data[start:end]
        check = checksum(body, check)
        if check != stored or any(data[end:following]):
            raise RecordingError(
                f"{name}: damaged: the checksum of the entry at byte {at} is wrong"
            )
        yield at, body
        at, last = following, bytes(body[:1])
