"""The call record: what a rank writes is what is read, also where it is written in two words."""

from __future__ import annotations

import marshal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from struct import pack
from types import FrameType
from typing import Any

import pytest
from ompy.check.logs import read_record
from ompy.check.record import program_frame
from ompy.check.recorder import CHUNK, Recorder, ToldRecorder

BYTES = ((("u1", 8),), 1)
SEND = ("send", 1, "comm.Isend", 1, 0, 7, BYTES, "standard", 0)
RECV = ("recv", 1, "comm.Irecv", 1, 0, 7, BYTES, 0, None)
GOT = ("got", 0, (0, 7, 8, 1, -1))
WAIT = ("wait", 1, "request.Waitall", 0, 0, "all")
WHOLE: list[tuple[Any, ...]] = [
    (*SEND[:8], 3),
    (*SEND[:8], 4),
    (*RECV[:7], 5, None),
    ("got", 5, GOT[2]),
    ("wait", 1, "request.Waitall", [3, 5], [3, 5], "all"),
    ("wait", 1, "request.Waitall", [4], [4], "all"),
]


def write_all(recorder: Recorder) -> None:
    """What `WHOLE` has."""
    recorder.write_again(SEND, 3, 0)
    recorder.write_again(SEND, 4, 0)
    recorder.write_again(RECV, 5, 0)
    recorder.write_again(GOT, 5, 0)
    recorder.write_again(WAIT, 3, 5)
    recorder.write_again(WAIT, 4, 0)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "rank-0.calls")


def test_what_comes_again_is_read_whole(path: str) -> None:
    recorder = Recorder(path, 100)
    write_all(recorder)
    recorder.write_event(("end",))
    record = read_record(path, 0)
    assert record.events == [*WHOLE, ("end",)]
    assert record.complete


def test_who_is_told_is_told_whole() -> None:
    told: list[tuple[Any, ...]] = []
    recorder = ToldRecorder(told.append, 100)
    write_all(recorder)
    assert told == WHOLE
    assert not recorder.may_repeat(recorder.round)


def test_a_call_that_comes_again_is_the_same_entry(path: str) -> None:
    recorder = Recorder(path, 100)
    recorder.write_event(SEND)
    shape = recorder.shape(SEND)
    recorder.repeat(shape, 0)
    recorder.repeat(shape, 0)
    assert recorder.left == 97
    assert read_record(path, 0).events == [SEND] * 3


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_a_wait_for_several_requests(path: str, count: int) -> None:
    recorder = Recorder(path, 100)
    numbers = list(range(5, 5 + count))
    recorder.append_wait(recorder.shape(WAIT), numbers)
    recorder.write_again(WAIT, 3, 0)
    waits = [(*WAIT[:3], each, each, "all") for each in (numbers, [3])]
    assert read_record(path, 0).events == waits


def test_the_limit_counts_what_comes_again(path: str) -> None:
    recorder = Recorder(path, 2)
    for number in range(1, 5):
        recorder.write_again(SEND, number, 0)
    recorder.write_event(("find", "leak", "it is left", ()))
    names = [event[0] for event in read_record(path, 0).events]
    assert names == ["send", "send", "cut", "find"]
    assert not recorder.may_repeat(recorder.round)


def test_the_record_grows(path: str) -> None:
    entries = CHUNK // 16 + 10
    recorder = Recorder(path, 2 * entries)
    for number in range(1, entries + 1):
        recorder.write_again(SEND, number, 0)
    assert [event[8] for event in read_record(path, 0).events] == list(range(1, entries + 1))


def test_a_new_record_has_shapes_of_its_own(path: str) -> None:
    recorder = Recorder(path, 100)
    recorder.write_again(SEND, 1, 0)
    turn = recorder.round
    recorder.begin_anew()
    assert not recorder.may_repeat(turn)
    recorder.write_again(RECV, 2, 0)
    assert read_record(path, 0).events == [(*RECV[:7], 2, None)]


@pytest.mark.parametrize("length", [12, 8])
def test_an_entry_of_no_known_shape_ends_a_record(path: str, length: int) -> None:
    first = marshal.dumps(("got", 1, None))
    begun = pack("<I", len(first)) + first
    begun += bytes(-len(begun) % 8)
    again = pack("<I", 1 << 31 | length) + pack("<III", 9, 0, 0)
    Path(path).write_bytes(begun + again + begun)
    assert read_record(path, 0).events == [("got", 1, None)]


def test_a_line_is_the_program_s_and_not_the_standard_library_s() -> None:
    found: list[FrameType | None] = []
    ours: dict[str, Any] = {"__name__": "ompy.call", "found": found}
    ours |= {"look": program_frame, "frame": sys._getframe}
    # a function of a module that is called like ours
    exec("def call(): found.append(look(frame()))", ours)
    with ExitStack() as stack:
        stack.callback(ours["call"])
    thread = threading.Thread(target=ours["call"])
    thread.start()
    thread.join()
    names = [each.f_code.co_name for each in found if each is not None]
    test = "test_a_line_is_the_program_s_and_not_the_standard_library_s"
    assert names == [test, "run"], "of a thread without a function of the program"
