"""Looks after tasks of a Slurm step on a host where none may have begun MPI.

`python -m ompy.runtime.passive.watch JOB.STEP HOST=TASKS...`, which srun runs on these hosts for an
agent that waits for them (`step_watch.py`). It writes the name of its host when a task there has
ended, and ends when its standard input does.
"""

from __future__ import annotations

import os
import select
import sys
import time
from typing import Final

from ompy.runtime.passive.tasks import count_tasks

INTERVAL: Final = 0.2  # s; arbitrary: often enough to be no part of two seconds
NEVER_SEEN: Final = 2.0  # s; arbitrary: srun starts the hosts of a step at the same time


def main() -> int:
    """Look until there is something to say, or nobody to say it to."""
    step = sys.argv[1]
    expected = dict(word.split("=", 1) for word in sys.argv[2:])
    host = os.environ.get("SLURMD_NODENAME", "")
    if host not in expected:
        return 1
    began, seen = time.monotonic(), False
    while not select.select([0], [], [], INTERVAL)[0]:
        count = count_tasks(step)
        if count is None:
            # it has ended there, or not begun: only time tells
            gone = seen or time.monotonic() - began > NEVER_SEEN
        else:
            seen = True
            gone = count < int(expected[host])
        if gone:
            os.write(1, f"{host}\n".encode())
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
