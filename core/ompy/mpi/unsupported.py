"""What calls say that are there only if a parameter asks for them."""

from __future__ import annotations


def not_enabled(name: str) -> NotImplementedError:
    """The error for a call for programs that survive the death of ranks, where that is the end.

    Args:
        name: of the call.
    """
    why = "the death of a rank ends the job, as the parameter mpi_ft_enable is not set"
    return NotImplementedError(f"MPI.{name}: {why}")
