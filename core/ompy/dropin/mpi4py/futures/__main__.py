"""`python -m mpi4py.futures script.py`: rank 0 runs the program, the others are its workers."""

import os
import sys

from ompy.addons.running import run_command_line, run_or_abort

USAGE = """\
usage: {program} <pyfile> [arg] ...
   or: {program} -m <module> [arg] ...
   or: {program} -c <string> [arg] ...
   or: {program} - [arg] ..."""


class UsageExit(SystemExit):
    """The command line was wrong, or asked for help: no reason to abort."""


def main():
    """The command line."""
    from ompy.addons.futures.world_pool import run_program

    try:
        run_or_abort(lambda: run_program(_run))
    except UsageExit as stop:
        sys.exit(stop.code)


def _run():
    problem = _problem(sys.argv[1:])
    if problem is None:
        run_command_line()
        return
    text = USAGE.format(program=f"{os.path.basename(sys.executable)} -m mpi4py.futures")
    out = sys.stderr if problem else sys.stdout
    print(*filter(None, (problem, text)), sep="\n", file=out)
    raise UsageExit(1 if problem else 0)


def _problem(arguments):
    """What is wrong with a command line; None if nothing is, "" for a call for help."""
    if not arguments:
        return "No path specified for execution"
    first = arguments[0]
    if first in ("-h", "--help"):
        return ""
    if first in ("-m", "-c"):
        return f"Argument expected for option: {first}" if len(arguments) < 2 else None
    if first == "-":
        return None
    if first.startswith("-"):
        return f"Unknown option: {first}"
    return None if os.path.exists(first) else f"Path does not exist: {first}"


if __name__ == "__main__":
    main()
