"""Calling back into the user's code from MPI: exceptions are printed and become MPI errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.mpi.errors import MPIException


def guarded(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call a user's function.

    Raises:
        MPIException: it raised; an MPI error keeps its code, others are ERR_OTHER.
    """
    try:
        return function(*arguments, **keywords)
    except Exception as problem:
        import traceback

        traceback.print_exc()
        code = problem.code if isinstance(problem, MPIError) else ERR_OTHER
        name = getattr(function, "__name__", "a callback")
        raise MPIException(code, f"{name} raised {type(problem).__name__}") from None
