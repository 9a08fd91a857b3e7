"""Waitables complete once and tell whoever asked."""

from __future__ import annotations

from ompy.data.errors import ERR_RANK, MPIError
from ompy.data.request import Request, Waitable


def test_callbacks_in_order_and_once() -> None:
    said: list[int] = []
    waitable = Waitable()
    waitable.notify(lambda: said.append(1))
    waitable.notify(lambda: said.append(2))
    assert said == []
    waitable.finish()
    assert said == [1, 2]
    waitable.notify(lambda: said.append(3))
    assert said == [1, 2, 3]


def test_failing_a_complete_request_changes_nothing() -> None:
    request = Request()
    request.finish()
    request.fail(ERR_RANK, "too late")
    assert request.error == 0
    other = Request()
    other.fail(ERR_RANK, "gone")
    assert other.complete
    assert (other.error, other.detail) == (ERR_RANK, "gone")


def test_error_text_names_class_and_detail() -> None:
    assert str(MPIError(ERR_RANK, "rank 9 of 4")) == "MPI_ERR_RANK: invalid rank: rank 9 of 4"
    assert str(MPIError(4711)) == "MPI error 4711: unknown error code"
