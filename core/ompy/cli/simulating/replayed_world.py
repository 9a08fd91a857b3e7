"""`ompy replay FILE`: a virtual world that failed, once more, by `ompy sim` itself.

This process becomes that command: in another one, with other modules, objects would lie elsewhere
in memory, and a program that hangs on it would do something else.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from ompy import outputs
from ompy.cli.refusing import Refused
from ompy.cli.simulating.kept_world import KeptWorldError, digest_of, read_kept_world
from ompy.cli.terminal import one_line

USAGE = 2  # exit code: what was asked for cannot be done


def replay_world(path: str, rank: int | None, *, goes_on: bool = False) -> NoReturn:
    """Run a world that was kept. Ends this process.

    Args:
        path: of the file, from the root.
        rank: to be in the debugger; None for none.
        goes_on: where the calls of the program are not those of a schedule.
    """
    command = _this_command()
    try:
        kept = read_kept_world(path)
        os.chdir(kept.folder)
    except KeptWorldError as problem:
        _refuse(str(problem))
    except OSError as problem:
        _refuse(f"{one_line(str(problem.filename))}: {problem.strerror}; the world was run there")
    digest = digest_of(kept.program)
    if not digest:
        _refuse(f"{kept.program}: it cannot be read, in {kept.folder}")
    if digest != kept.check and not kept.schedule:  # of a schedule `ompy sim` says it
        text = f"{kept.program} has been changed since: the world may be another one"
        outputs.tell(f"ompy replay: warning: {text}\n", "changed", "warning")
    words = ["sim", *(() if rank is None else ("--rank", str(rank), "--pdb"))]
    words += ["--schedule" if kept.schedule else "--kept", path]
    if goes_on and not kept.schedule:
        _refuse(f"--go-on is of a schedule, and {path} keeps a seed: it goes on anyhow")
    words += ["--go-on"] if goes_on else []
    os.execv(sys.executable, [*command, *words, *kept.words])  # noqa: S606


def _refuse(text: str) -> NoReturn:
    raise Refused(text)


def _this_command() -> list[str]:
    """How this process was started, without the words behind `ompy`."""
    command = list(sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1])
    command[0] = sys.executable
    if os.path.isfile(command[-1]):  # its path may begin at this folder, which is left
        command[-1] = os.path.abspath(command[-1])
    return command
