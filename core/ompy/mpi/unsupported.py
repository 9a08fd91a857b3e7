"""What calls say that exist in name only: parts of MPI that ompy does not have yet."""

from __future__ import annotations


def not_available(name: str, what: str) -> NotImplementedError:
    """The error for a call that is not there.

    Args:
        name: of the call.
        what: the part of MPI it belongs to.
    """
    return NotImplementedError(f"MPI.{name}: {what} are not available in this version of ompy")


def not_enabled(name: str) -> NotImplementedError:
    """The error for a call for programs that survive the death of ranks, where that is the end.

    Args:
        name: of the call.
    """
    why = "the death of a rank ends the job, as the parameter mpi_ft_enable is not set"
    return NotImplementedError(f"MPI.{name}: {why}")
