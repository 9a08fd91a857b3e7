"""Instances whose memory is kept for the next ones: as new, whatever the last one was."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from ompy import MPI
from ompy.data.convertor import ContiguousConvertor
from ompy.data.request import Request as Operation
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.recycling import recycle

from tests.support.forms import COMPILED

MANY = 1000  # more than are kept


class Mine(MPI.Request):
    """A subclass with more in it than its base."""


def state_of(number: int) -> RequestState:
    made = RequestState(None, Operation(), bytearray(8))
    made.number = number
    return made


def other_class() -> Any:
    """One whose instances are as large: Python's allocator would give them the same memory."""
    word, plain = type("_", (), {"__slots__": ("a",)}), type("_", (), {"__slots__": ()})
    size = word.__basicsize__ - plain.__basicsize__
    count = (RequestState.__basicsize__ - plain.__basicsize__) // size
    names = tuple(f"word{number}" for number in range(count))
    return type("Other", (), {"__slots__": names})


@pytest.mark.skipif(not COMPILED, reason="Python's allocator is all there is, interpreted")
def test_memory_of_what_went_is_used_again() -> None:
    """By the next one of its class, and by nothing else."""
    other = other_class()
    first = state_of(7)
    place = id(first)
    del first
    others = [other() for _ in range(MANY)]
    assert place not in map(id, others)
    assert id(state_of(8)) == place


def test_nothing_is_left_of_the_last_one() -> None:
    for number in range(1, MANY):
        state = state_of(number)
        assert state.number == number
        del state
        assert state_of(0).number == 0
    request = MPI.Request()
    assert not request
    assert request == MPI.REQUEST_NULL


def test_weak_references_die_with_what_they_refer_to() -> None:
    for number in range(MANY):
        state = state_of(number)
        weak = weakref.ref(state)
        again = MPI.Request()
        also = weakref.ref(again)
        del state, again
        assert weak() is None
        assert also() is None


def test_more_at_once_than_are_kept() -> None:
    for _ in range(3):
        states = [state_of(number) for number in range(MANY)]
        assert len({id(state) for state in states}) == MANY
        assert [state.number for state in states] == list(range(MANY))
        del states


def test_a_subclass_has_memory_of_its_own() -> None:
    for _ in range(MANY):
        mine, plain = Mine(), MPI.Request()
        mine.note = "here"  # it has a dictionary
        assert type(mine) is Mine
        assert type(plain) is MPI.Request
        assert not hasattr(plain, "note")
        del mine, plain


def test_the_collector_goes_through_them() -> None:
    """What holds itself goes, and its memory is used again."""
    for _ in range(10):
        for number in range(200):
            state = state_of(number)
            state.keep = [state]
            weak = weakref.ref(state)
        del state
        gc.collect()
        assert weak() is None
    assert state_of(5).number == 5


def test_a_finalizer_that_a_program_adds_is_run_each_time() -> None:
    """Python notes in an object's memory that it was run."""
    ended = []

    def note(request: MPI.Request) -> None:
        ended.append(type(request))

    MPI.Request.__del__ = note  # type: ignore[attr-defined]
    try:
        for _ in range(MANY):
            made = MPI.Request()
            del made
    finally:
        del MPI.Request.__del__  # type: ignore[attr-defined]
    assert len(ended) >= MANY
    assert not MPI.Request()


def test_buffers_are_given_back() -> None:
    for _ in range(MANY):
        buffer = bytearray(16)
        convertor = ContiguousConvertor(memoryview(buffer))
        assert convertor.size == 16
        del convertor
        buffer.extend(b"more")  # an error as long as something has a view of it


def test_what_cannot_be_kept_is_left_alone() -> None:
    class Plain:
        """Has a dictionary, of which Python takes care."""

    recycle(Plain, int, tuple)
    one = Plain()
    one.here = 1
    del one
    assert not hasattr(Plain(), "here")
    assert (1, 2, 3)[1:] == (2, 3)
    assert [10**20 + number for number in range(3)][2] == 10**20 + 2
