"""A launcher for a process that nobody has launched and that is to start others.

Such a process runs this module with one end of a socket pair as standard input, the
*registration socket* of a rank, and becomes rank 0 of the job that is made here. All else is as
under `ompy-run`. Where the parameters come from: the environment and the files, as ever.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ompy.runtime.ranks.forked import ForkedRank

_REGISTRATION: Final = 0  # its descriptor, when this begins


def main() -> int:
    """Entry point. Returns the exit code, which nobody reads."""
    process, *argv = sys.argv[1:]
    if os.fork():  # the adopted process is nobody's parent by this
        os._exit(0)
    os.setsid()
    registration = os.dup(_REGISTRATION)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, _REGISTRATION)
    os.close(null)
    rank = _start_agent(registration)
    if rank is not None:
        rank.run()
        return 0
    from ompy.cli.run import _end, _guarded

    return _end(_guarded(lambda: _adopt(int(process), registration, argv)))


def _start_agent(registration: int) -> ForkedRank | None:
    """Have it ready when the job is, as under `ompy-run`."""
    from ompy.runtime.agents.early_agent import start_early

    os.set_inheritable(registration, False)
    return start_early()


def _adopt(process: int, registration: int, argv: Sequence[str]) -> int:
    """Make the job, and run it to its end."""
    import socket

    from ompy.cli.launch.binding import place_wishes
    from ompy.cli.launch.command_line import parse_command_line
    from ompy.cli.launch.hosts import Host
    from ompy.cli.launch.launch_options import launch_options
    from ompy.cli.launch.launching import (
        choose_starters,
        launch_job,
        resolve,
        set_log_format,
    )
    from ompy.cli.launch.placing import cores
    from ompy.frameworks.job import App, Job, Placement

    host = socket.gethostname()
    set_log_format("text", host=host)
    registry, plms = resolve(())
    job = Job(
        job_id=os.urandom(8).hex(),
        apps=(App(tuple(argv), 1),),
        hosts=(host,),
        placements=(Placement(0, 0, 0, 0),),
        mca=registry.snapshot(),
        stdin_rank=-1,
    )
    registry.speak_for(job=job.job_id, host=host)
    starts = choose_starters(registry, plms, [Host(host, cores())])
    (group,) = parse_command_line(["-n", "1", "true"])  # its options: the defaults
    options = launch_options(registry, group.options, cores())._replace(
        adopted=(process, registration), place=place_wishes(group, registry).rule
    )
    try:
        return launch_job(registry, starts, job, options)
    finally:
        registry.close()


if __name__ == "__main__":
    sys.exit(main())
