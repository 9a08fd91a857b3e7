"""`map` of an executor: what it has submitted, in which order results come, what is cancelled."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.addons.futures import results


class Noted(Executor):
    """Notes what is submitted; the test ends it."""

    def __init__(self) -> None:
        self.tasks: list[tuple[Future[Any], Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks.append((future, (fn, args)))
        return future

    def end(self, place: int) -> None:
        future, (fn, args) = self.tasks[place]
        future.set_result(fn(*args))


def double(number: int) -> int:
    return 2 * number


def test_all_are_submitted_before_the_first_result_is_asked_for() -> None:
    executor = Noted()
    found = results.begin(results.Calls(executor, double, iter([(1,), (2,)])), None, None, False)
    assert len(executor.tasks) == 2
    executor.end(1)
    executor.end(0)
    assert list(found) == [2, 4]


@given(st.integers(1, 6), st.integers(0, 6))
def test_no_more_are_ahead_than_the_buffer_has(size: int, number: int) -> None:
    executor = Noted()
    calls = results.Calls(executor, double, ((place,) for place in range(number)))
    found = results.begin(calls, None, size, False)
    for place in range(number):
        assert len(executor.tasks) == min(number, place + size)
        executor.end(place)
        assert next(found) == 2 * place
    assert list(found) == []


def test_results_as_they_come() -> None:
    executor = Noted()
    calls = results.Calls(executor, double, iter([(1,), (2,), (3,)]))
    found = results.begin(calls, None, None, True)
    executor.end(2)
    assert next(found) == 6
    executor.end(0)
    assert next(found) == 2
    found.close()
    assert executor.tasks[1][0].cancelled()


@pytest.mark.parametrize("unordered", [False, True])
def test_a_timeout_cancels_what_is_left(unordered: bool) -> None:
    executor = Noted()
    calls = results.Calls(executor, double, iter([(1,), (2,)]))
    found = results.begin(calls, 0, None, unordered)
    with pytest.raises(TimeoutError):
        next(found)
    assert all(future.cancelled() for future, _ in executor.tasks)


@given(st.lists(st.integers(), max_size=20), st.integers(1, 7))
def test_chunks(items: list[int], size: int) -> None:
    found = list(results.chunks(items, size))
    assert [item for chunk in found for item in chunk] == items
    assert all(len(chunk) == size for chunk in found[:-1])
    call = results.ChunkCall(double)
    arguments = [tuple((item,) for item in chunk) for chunk in found]
    assert [each for chunk in arguments for each in call(*chunk)] == [2 * item for item in items]
