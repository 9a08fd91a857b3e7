"""Futures that others follow, as promises do: `mpi4py.futures.aplus`.

What a function returns may be a future again, which the one that follows then waits for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["ThenableFuture", "catch", "then"]

_T = TypeVar("_T")
_Hook = Callable[[Any], Any] | None


class ThenableFuture(Future[_T]):
    """A future with the functions of this module as methods."""

    def then(self, on_success: _Hook = None, on_failure: _Hook = None) -> Future[Any]:
        """As the function `then`."""
        return then(self, on_success, on_failure)

    def catch(self, on_failure: _Hook = None) -> Future[Any]:
        """As the function `catch`."""
        return catch(self, on_failure)


def then(future: Future[Any], on_success: _Hook = None, on_failure: _Hook = None) -> Future[Any]:
    """A future of what functions make of another future's end.

    Args:
        future: the other one.
        on_success: called with its result; the result as it is, if there is none.
        on_failure: called with its exception; what it returns is the new exception if that is one,
            and the result if not. The exception as it is, if there is none.

    Returns:
        A future; if the function returns one, that decides.
    """
    made: Future[Any] = type(future)()
    future.add_done_callback(lambda done: _follow(made, done, on_success, on_failure, ()))
    return made


def catch(future: Future[Any], on_failure: _Hook = None) -> Future[Any]:
    """A future that does not fail where another one does.

    Args:
        future: the other one.
        on_failure: as for `then`; the result is None, if there is none.
    """
    return then(future, None, on_failure or (lambda _: None))


def _follow(
    made: Future[Any],
    done: Future[Any],
    on_success: _Hook,
    on_failure: _Hook,
    passed: tuple[Future[Any], ...],
) -> None:
    """End a future as another one that is done.

    Args:
        made: the future to end.
        done: the other one.
        on_success: called with a result.
        on_failure: called with an exception.
        passed: what `made` has waited for before.
    """
    if made.cancelled():
        return
    if done.cancelled():
        made.cancel()
        made.set_running_or_notify_cancel()
        return
    failed, found = _outcome(done, on_success, on_failure)
    _settle(made, failed, found, (*passed, done))


def _outcome(done: Future[Any], on_success: _Hook, on_failure: _Hook) -> tuple[bool, Any]:
    """Whether it is a failure, and the exception, the result or the future to wait for."""
    try:
        problem = done.exception()
        if problem is None:
            return False, on_success(done.result()) if on_success else done.result()
        if on_failure is None:
            return True, problem
        found = on_failure(problem)
        return isinstance(found, BaseException), found
    except BaseException as raised:
        return True, raised


def _settle(made: Future[Any], failed: bool, found: Any, passed: tuple[Future[Any], ...]) -> None:
    """End a future, or have it wait for the one that a function returned."""
    if not failed and isinstance(found, Future):
        if found is not made and all(found is not each for each in passed):
            found.add_done_callback(lambda done: _follow(made, done, None, None, passed))
            return
        failed, found = True, RuntimeError(f"chain cycle detected: {found} waits for itself")
    if not made.set_running_or_notify_cancel():
        return
    if failed:
        made.set_exception(found)
    else:
        made.set_result(found)
