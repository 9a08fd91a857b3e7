"""`ompy-run --join FILE`: programs that become part of a job that runs already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ompy.cli.launch.command_line import CommandError, Group

if TYPE_CHECKING:
    from ompy.frameworks.job import App

# what concerns the programs and the terminal; all else the job has decided
_OWN: Final = frozenset(
    {"join", "count", "wdir", "exports", "tag_output", "timestamp_output", "quiet", "log_format"}
)


def join_as_guest(groups: Sequence[Group], host: str) -> int:
    """Run the programs of a command line in another job. Returns the exit code.

    Raises:
        CommandError: the job cannot be joined, or the command line asks for what is not a guest's
            to decide.
    """
    from ompy.cli.launch.launching import NOT_STARTED, make_job
    from ompy.runtime.agents.early_agent import discard
    from ompy.runtime.guests.arrival import NotLetIn, Terminal, join_job

    options = groups[0].options
    _refuse_others(groups)
    if any(group.options["count"] is None for group in groups):
        raise CommandError("--join: say by -n how many ranks join")
    job, _ = make_job(groups, host)
    discard()  # the agent that waits here is of no use: the job has its own rules for ranks
    terminal = Terminal(options["tag_output"], options["timestamp_output"], options["quiet"])
    try:
        return join_job(options["join"], _with_directories(job.apps), terminal)
    except NotLetIn as problem:
        raise CommandError(f"--join {problem}", NOT_STARTED) from None


def _refuse_others(groups: Sequence[Group]) -> None:
    for group in groups:
        for name in sorted(group.given - _OWN):
            raise CommandError(
                f"--join: the job that is joined decides about {name.replace('_', '-')}; "
                "give that where it is started"
            )


def _with_directories(apps: Sequence[App]) -> list[App]:
    import os

    return [app._replace(directory=app.directory or os.getcwd()) for app in apps]
