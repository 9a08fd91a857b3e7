"""Futures made of futures: all of several, what a function makes of one, chains."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.addons.futures.chaining import ThenableFuture, catch, then
from ompy.addons.futures.combining import collect, compose


def done(value: object) -> Future[object]:
    future: Future[object] = Future()
    future.set_result(value)
    return future


@given(st.permutations(range(5)))
def test_results_come_in_the_order_of_the_futures(order: list[int]) -> None:
    futures: list[Future[int]] = [Future() for _ in order]
    whole = collect([*futures, futures[0]])
    for place in order:
        assert not whole.done()
        futures[place].set_result(place)
    assert whole.result(0) == [*range(5), 0]


@given(st.integers(0, 3), st.integers(0, 3))
def test_the_first_failure_decides_and_cancels_the_rest(good: int, bad: int) -> None:
    futures: list[Future[int]] = [Future() for _ in range(5)]
    whole = collect(futures)
    for future in futures[:good]:
        future.set_result(0)
    futures[4].set_exception(KeyError(bad))
    with pytest.raises(KeyError):
        whole.result(0)
    assert [future.cancelled() for future in futures[:4]] == [False] * good + [True] * (4 - good)


def test_cancelling_goes_both_ways() -> None:
    futures: list[Future[int]] = [Future() for _ in range(3)]
    collect(futures).cancel()
    assert all(future.cancelled() for future in futures)
    futures = [Future() for _ in range(3)]
    whole = collect(futures)
    futures[1].cancel()
    with pytest.raises(CancelledError):
        whole.result(0)
    assert futures[0].cancelled()
    base: Future[int] = Future()
    compose(base).cancel()
    assert base.cancelled()


def test_nothing_is_there_at_once() -> None:
    assert collect([]).result(0) == []


def test_what_functions_make_of_an_end() -> None:
    failed: Future[int] = Future()
    failed.set_exception(ValueError("3"))
    assert compose(done(1), lambda found: found + 1).result(0) == 2
    assert compose(failed, excepthook=lambda problem: int(str(problem))).result(0) == 3
    other = compose(failed, excepthook=lambda problem: KeyError(str(problem)))
    assert isinstance(other.exception(0), KeyError)
    assert isinstance(compose(done(1), lambda _: 1 / 0).exception(0), ZeroDivisionError)
    assert compose(failed).exception(0) is failed.exception()


def test_a_result_that_is_an_exception_is_no_failure() -> None:
    problem = KeyError("found")
    assert then(done(problem)).result(0) is problem
    assert then(done(1), lambda _: problem).result(0) is problem


def test_a_chain_waits_for_the_future_that_comes_back() -> None:
    inner: Future[str] = Future()
    outer = then(done(1), lambda _: inner)
    assert not outer.done()
    inner.set_result("inner")
    assert outer.result(0) == "inner"


def test_a_chain_that_waits_for_itself() -> None:
    base = ThenableFuture[object]()
    made = base.then(lambda _: made)
    base.set_result(1)
    with pytest.raises(RuntimeError, match="chain cycle detected"):
        made.result(0)


def test_a_caught_failure() -> None:
    failed: Future[int] = Future()
    failed.set_exception(ValueError("3"))
    assert catch(failed).result(0) is None
    assert catch(done(5)).result(0) == 5
    assert isinstance(catch(failed, lambda _: KeyError()).exception(0), KeyError)
