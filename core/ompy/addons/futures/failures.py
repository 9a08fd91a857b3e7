"""Exceptions that travel from a worker: with what its traceback was, as text."""

from __future__ import annotations

import traceback
from typing import Any

from ompy import MPI


class RemoteTraceback(Exception):
    """The traceback of an exception at a worker: the cause of what the caller gets."""


class TravellingError(Exception):
    """An exception on its way; whoever unpickles it gets the exception itself.

    Args:
        problem: the exception.
        text: its traceback.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, self.args


def _arrived(problem: BaseException, text: str) -> BaseException:
    problem.__cause__ = RemoteTraceback(text)
    return problem


def packed(problem: BaseException, comm: MPI.Comm) -> TravellingError:
    """An exception for its way to the client.

    Args:
        problem: what a task raised at this worker.
        comm: the workers.
    """
    where = f"worker {comm.Get_rank()} of {comm.Get_size()} on {MPI.Get_processor_name()}"
    lines = "".join(traceback.format_exception(problem))
    problem.__cause__ = problem.__context__ = problem.__traceback__ = None
    return TravellingError(problem, f'\n### {where}\n"""\n{lines}"""')
