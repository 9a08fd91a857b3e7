"""Small measurements and tests of a job: `python -m mpi4py.bench`.

The command line is mpi4py's; `ompy bench` measures ompy itself. MPI is imported by `main`, after it
has set `mpi4py.rc`.
"""

from __future__ import annotations

import sys
from argparse import REMAINDER, ArgumentParser
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ompy.MPI import Intracomm

__all__ = ["futures", "helloworld", "main", "pingpong", "ringtest"]

Arguments = Sequence[str] | None


def helloworld(comm: Intracomm, args: Arguments = None, verbose: bool = True) -> str:
    """Every rank says hello, one after another: the text of this one."""
    from ompy.addons.bench.rounds import helloworld as command

    return command(comm, args, verbose)


def ringtest(comm: Intracomm, args: Arguments = None, verbose: bool = True) -> float:
    """A message goes round all ranks: seconds."""
    from ompy.addons.bench.rounds import ringtest as command

    return command(comm, args, verbose)


def pingpong(
    comm: Intracomm, args: Arguments = None, verbose: bool = True
) -> list[tuple[int, float, float]]:
    """Messages between two ranks: of each size, seconds one way, and their deviation."""
    from ompy.addons.bench.pingpong import pingpong as command

    return command(comm, args, verbose)


def futures(
    comm: Intracomm, args: Arguments = None, verbose: bool = True
) -> list[tuple[int, float, float]]:
    """Tasks of `mpi4py.futures`: of each size, seconds of all of them, and their deviation."""
    from ompy.addons.bench.throughput import futures as command

    return command(comm, args, verbose)


COMMANDS: Final[dict[str, Callable[..., Any]]] = {
    "helloworld": helloworld,
    "ringtest": ringtest,
    "pingpong": pingpong,
    "futures": futures,
}


def parser_of(command: str, verbose: bool) -> ArgumentParser:
    """A parser of the arguments of a command, with the one that all have.

    Args:
        command: its name.
        verbose: what holds when nothing is said.
    """
    from pathlib import Path

    parser = ArgumentParser(prog=f"{Path(sys.executable).name} -m mpi4py.bench {command}".strip())
    if command:
        parser.add_argument(
            "-q",
            "--quiet",
            action="store_false",
            dest="verbose",
            default=verbose,
            help="quiet output",
        )
    return parser


def main(args: Arguments = None) -> None:
    """The command line.

    Args:
        args: its words; those of this process, if there are none.
    """
    parser = parser_of("", verbose=True)
    parser.usage = "%(prog)s [options] <command> [args]"
    parser.add_argument(
        "--threads",
        action="store_true",
        default=None,
        help="initialize MPI with thread support",
    )
    parser.add_argument(
        "--no-threads",
        action="store_false",
        dest="threads",
        help="initialize MPI without thread support",
    )
    parser.add_argument(
        "--thread-level",
        metavar="LEVEL",
        choices=("single", "funneled", "serialized", "multiple"),
        help="initialize MPI with required thread level",
    )
    parser.add_argument("command", metavar="<command>", help=f"one of {', '.join(COMMANDS)}")
    parser.add_argument("args", nargs=REMAINDER, metavar="[args]", help="arguments of the command")
    options = parser.parse_args(args)

    from ompy.mpi.processes.options import rc

    if options.threads is not None:
        rc.threads = options.threads
    if options.thread_level is not None:
        rc.thread_level = options.thread_level

    from ompy import MPI

    comm = MPI.COMM_WORLD
    command = COMMANDS.get(options.command)
    if command is None:
        if comm.Get_rank() == 0:
            parser.print_usage(sys.stderr)
            known = ", ".join(COMMANDS)
            print(f"unknown command {options.command!r}; there are {known}", file=sys.stderr)
        comm.Barrier()  # the first end of a rank ends the job
        parser.exit(2)
    command(comm, options.args)
    parser.exit()
