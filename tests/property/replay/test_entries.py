"""Files of recordings: what is written is read, and what is cut or changed is found."""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.replay import entries, entry_writer
from ompy.replay.data_log import Streams, body_bytes, message_bytes, taken_bytes
from ompy.replay.entries import (
    DATA,
    END,
    EVENTS,
    HEAD,
    HEADER_SIZE,
    Header,
    RecordingError,
    checksum,
    first_checksum,
    header_bytes,
    read_entries,
)
from ompy.replay.entry_writer import EntryWriter
from ompy.replay.events import (
    CALLS,
    HOW,
    QUESTIONS,
    Answered,
    Cancelled,
    Comm,
    Completed,
    Ended,
    File,
    Locked,
    Looked,
    Matched,
    Note,
    NothingFound,
    NotYet,
    Posted,
    Prefix,
    Raised,
    Returned,
    Site,
    Thread,
    Time,
    Turn,
    Unlocked,
    bytes_of,
    counts_on,
    entry_of,
)

FEW = settings(max_examples=20)  # each looks at every byte
HEADER = Header(EVENTS, 3, 8, b"12345678")
BODIES = st.lists(
    st.binary(min_size=1, max_size=40).filter(lambda body: body[0] != END), max_size=6
)


def u(bits: int) -> st.SearchStrategy[int]:
    """Numbers without a sign."""
    return st.integers(0, (1 << bits) - 1)


def s(bits: int) -> st.SearchStrategy[int]:
    """Numbers with one."""
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


PREFIX = st.builds(Prefix, u(32), u(32), u(32))
HOWS, CODES = st.sampled_from(range(len(HOW))), st.sampled_from(range(len(CALLS)))
ENTRIES = st.one_of(
    st.builds(File, u(32), u(32), st.text()),
    st.builds(Site, u(32), u(32), u(32), st.text()),
    st.builds(Comm, u(32), u(32), u(32), u(32), st.text()),
    st.builds(Matched, u(32), s(32), s(32), u(64)),
    st.builds(Note, u(32), st.sampled_from((1, 2, 3)), st.text()),
    st.builds(Thread, u(32), st.text()),
    st.builds(Turn, PREFIX, u(32)),
    st.builds(Returned, PREFIX),
    st.builds(Answered, PREFIX, st.sampled_from(range(len(QUESTIONS))), u(32), st.text()),
    st.builds(Looked, PREFIX, HOWS, u(32), s(32), s(32), s(32), s(32), u(64)),
    st.builds(NothingFound, PREFIX, HOWS, u(32), s(32), s(32), u(64)),
    st.builds(Posted, PREFIX, u(32), u(32), s(32), s(32)),
    st.builds(Cancelled, PREFIX, u(32), st.sampled_from((0, 1))),
    st.builds(Completed, PREFIX, CODES, u(32), st.lists(u(32), max_size=5).map(tuple)),
    st.builds(NotYet, PREFIX, CODES, u(32), u(64)),
    st.builds(Time, PREFIX, st.floats(allow_nan=False)),
    st.builds(Locked, PREFIX, u(32), u(32), st.sampled_from((0, 1)), u(64)),
    st.builds(Unlocked, PREFIX, u(32), u(32)),
    st.builds(Raised, PREFIX, st.text()),
    st.builds(Ended, PREFIX),
)


def file_of(bodies: list[bytes], *, ended: bool, padding: int = 0) -> bytes:
    """A file with these entries, as a rank leaves it."""
    made, check = bytearray(header_bytes(HEADER)), first_checksum(HEADER)
    for body in [*bodies, *([bytes((END,))] if ended else [])]:
        check = checksum(body, check)
        made += HEAD.pack(len(body), check) + padded(body)
    return bytes(made) + bytes(0 if ended else HEAD.size + padding)


def padded(body: bytes) -> bytes:
    """A body as it is in a file: the next entry is at a whole word."""
    return body + bytes(-len(body) % HEAD.size)


def read(data: bytes) -> tuple[list[bytes], bool]:
    """Bodies, and whether it has an end."""
    found = read_entries(data, "rank-3.events")
    assert found.header == HEADER
    return [bytes(body) for body in found.bodies], found.complete


@given(BODIES, st.booleans())
def test_what_is_written_is_read(bodies: list[bytes], ended: bool) -> None:
    assert read(file_of(bodies, ended=ended, padding=20)) == (bodies, ended)


@FEW
@given(BODIES)
def test_a_file_that_has_an_end_is_refused_wherever_it_is_cut(bodies: list[bytes]) -> None:
    data = file_of(bodies, ended=True)
    for size in range(len(data)):
        with pytest.raises(RecordingError, match=r"^rank-3.events: "):
            read(data[:size])


@FEW
@given(BODIES, st.integers(0, 20))
def test_of_a_killed_rank_only_the_zeros_behind_may_be_cut(
    bodies: list[bytes], padding: int
) -> None:
    data = file_of(bodies, ended=False, padding=padding)
    for size in range(len(data)):
        if size >= len(data) - padding:
            assert read(data[:size]) == (bodies, False)
            continue
        with pytest.raises(RecordingError, match="truncated"):
            read(data[:size])


@FEW
@given(BODIES, st.booleans(), st.integers(1, 255))
def test_a_changed_byte_is_found_or_does_not_matter(
    bodies: list[bytes], ended: bool, change: int
) -> None:
    data = bytearray(file_of(bodies, ended=ended, padding=4))
    matters = len(data) - (0 if ended else 4)
    for place in range(len(data)):
        data[place] ^= change
        if place < matters:
            with pytest.raises(RecordingError):
                read(bytes(data))
        else:
            assert read(bytes(data)) == (bodies, ended)
        data[place] ^= change


@given(st.lists(st.binary(min_size=1, max_size=9), min_size=2, max_size=5), st.data())
def test_an_entry_that_is_left_out_is_found(bodies: list[bytes], draw: st.DataObject) -> None:
    bodies = [b"\x01" + body for body in bodies]
    place = draw.draw(st.integers(0, len(bodies) - 1))
    data = file_of(bodies, ended=True)
    begin = HEADER_SIZE + sum(HEAD.size + len(padded(body)) for body in bodies[:place])
    end = begin + HEAD.size + len(padded(bodies[place]))
    with pytest.raises(RecordingError, match="checksum"):
        read(data[:begin] + data[end:])


@given(st.binary(max_size=80))
def test_anything_else_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(RecordingError, match="rank-3.events: "):
        read(data)


def test_zeros_in_the_middle_are_no_end() -> None:
    data = bytearray(file_of([b"\x01" * 900] * 200, ended=False))
    begin = HEADER_SIZE + (HEAD.size + len(padded(bytes(900)))) * 3
    data[begin : begin + 4096] = bytes(4096)
    with pytest.raises(RecordingError, match="damaged at byte"):
        read(bytes(data))


def test_a_newer_version_says_so() -> None:
    data = bytearray(file_of([], ended=True))
    version = entries.VERSION + 1
    fields = (entries.MAGIC, version, *HEADER)
    check = crc32(entries._HEADER.pack(*fields, 0))
    data[:HEADER_SIZE] = entries._HEADER.pack(*fields, check)
    with pytest.raises(RecordingError, match=f"version {version}, this ompy reads"):
        read(bytes(data))


@given(ENTRIES)
def test_entries_are_read_as_they_were(entry: object) -> None:
    assert entry_of(bytes_of(entry)) == entry  # type: ignore[arg-type]


@given(st.binary(max_size=60))
def test_a_body_is_an_entry_or_is_refused(body: bytes) -> None:
    try:
        entry = entry_of(body)
    except RecordingError:
        return
    # not every text is its own again: numbers of places are whole
    assert entry_of(bytes_of(entry)) == entry or isinstance(entry, Time)


def test_no_is_counted_where_nothing_else_differs() -> None:
    prefix = Prefix(1, 2, 3)
    assert counts_on(NotYet(prefix, 0, 1, 5), NotYet(prefix, 0, 1, 9))
    assert not counts_on(NotYet(prefix, 0, 1, 5), NotYet(Prefix(1, 3, 3), 0, 1, 5))
    assert not counts_on(NotYet(prefix, 0, 1, 5), NotYet(prefix, 1, 1, 5))
    assert not counts_on(Ended(prefix), Ended(prefix))


@given(BODIES, st.booleans(), st.integers(1, 60))
def test_the_writer_writes_this_format(bodies: list[bytes], ends: bool, chunk: int) -> None:
    path, was = Path(f"entries-{os.getpid()}.tmp").absolute(), entry_writer.CHUNK
    entry_writer.CHUNK = chunk  # type: ignore[misc]
    try:
        writer = EntryWriter(str(path), HEADER)
        for body in bodies:
            writer.append_entry(body)
        if ends:
            writer.close()
            writer.close()
        assert read(path.read_bytes()) == (bodies, ends)
        if not ends:
            writer.close()
    finally:
        entry_writer.CHUNK = was  # type: ignore[misc]
        path.unlink()


@given(PREFIX, st.tuples(HOWS, u(31), s(32), s(32), s(32), s(32), u(63)))
def test_the_writer_puts_a_look_together_as_others_are(
    prefix: Prefix, numbers: tuple[int, ...]
) -> None:
    path = Path(f"look-{os.getpid()}.tmp").absolute()
    writer = EntryWriter(str(path), HEADER)
    try:
        writer.append_look(*prefix, *numbers)
        writer.close()
        assert read(path.read_bytes()) == ([bytes_of(Looked(prefix, *numbers))], True)
    finally:
        path.unlink()


def test_a_full_disk_ends_the_writing_and_not_the_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rank-3.events"
    writer = EntryWriter(str(path), HEADER)
    refuse = OSError(28, "No space left on device")

    def allocate(*_: int) -> None:
        raise refuse

    monkeypatch.setattr(entry_writer.os, "posix_fallocate", allocate)
    body = bytes((1,)) * (1 << 19)
    for _ in range(4):
        writer.append_entry(body)
    assert "No space" in writer.problem
    writer.close()
    assert read(path.read_bytes()) == ([body], False)


def test_messages_of_a_stream_come_in_the_order_of_their_receives() -> None:
    bodies = [
        message_bytes(7, (0, 1, 5), 3, b"two"),
        body_bytes(9, b"four"),
        message_bytes(2, (0, 1, 5), 5, b"one"),
        taken_bytes(8, (0, 1, 5), 5),
        taken_bytes(9, (0, 1, 5), 4),
        message_bytes(3, (0, 1, 6), 1, b"x"),
    ]
    streams = Streams([memoryview(body) for body in bodies], "rank-3.data")
    looked = streams.next_message(0, 1, 5, takes=False)
    got = [streams.next_message(0, 1, 5, takes=True) for _ in range(5)]
    assert looked == got[0]
    assert [one and (one.length, one.data and bytes(one.data)) for one in got] == [
        (5, b"one"), (3, b"two"), (5, None), (4, b"four"), None,
    ]  # fmt: skip
    assert streams.next_message(1, 1, 5, takes=True) is None


@pytest.mark.parametrize("body", [b"\x01", b"\x03", b"\x09" + bytes(40), b""])
def test_an_entry_of_data_that_is_not_whole_is_refused(body: bytes) -> None:
    with pytest.raises(RecordingError, match="rank-3.data"):
        Streams([memoryview(body)], "rank-3.data")


def test_kinds_of_files_are_told_apart() -> None:
    assert {EVENTS, DATA} == {1, 2}
