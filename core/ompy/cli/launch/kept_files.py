"""What a job writes into a directory of the user's: how it begins and ends, what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ompy.cli.launch.command_line import PROGRAM, CommandError, write_error_line
from ompy.outputs import PlantedError

Made = TypeVar("Made")


def begin_in(option: str, directory: str, lost: str, begin: Callable[[], Made]) -> Made | None:
    """Begin to write into a directory.

    Args:
        option: that names it, for messages.
        directory: its path.
        lost: what becomes of it where it cannot be written, as `nothing is traced`.
        begin: makes the directory ready.

    Returns:
        None if it cannot be written, which has been said: the job runs without.

    Raises:
        CommandError: it is no directory, or a stranger's.
    """
    try:
        return begin()
    except (FileExistsError, NotADirectoryError):
        raise CommandError(f"{option} {directory}: it is not a directory") from None
    except PlantedError as problem:
        raise CommandError(f"{option} {directory}: {problem}") from None
    except OSError as problem:
        _warn(option, directory, problem, lost)
        return None


def end_in(option: str, directory: str, write: Callable[[], object]) -> None:
    """Write how the job has ended; if that cannot be, it is said."""
    try:
        write()
    except OSError as problem:
        _warn(option, directory, problem, "job.json does not say how the job ended")


def _warn(option: str, directory: str, problem: OSError, what: str) -> None:
    write_error_line(f"{PROGRAM}: warning: {option} {directory}: {problem.strerror}; {what}")
