"""All ranks one after another: `helloworld`, `ringtest`."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Final

from ompy import MPI
from ompy.addons.bench import parser_of
from ompy.addons.sync import Sequential

PATTERN: Final = 42  # arbitrary: the byte that goes round
WRONG: Final = 2  # exit code of mpi4py's, when what comes back is not what was sent


def helloworld(comm: MPI.Intracomm, args: Sequence[str] | None, verbose: bool) -> str:
    """Every rank says hello, one after another.

    Args:
        comm: the ranks.
        args: the command line.
        verbose: what holds when that says nothing.
    """
    options = parser_of("helloworld", verbose).parse_args(args)
    rank, size = comm.Get_rank(), comm.Get_size()
    width = len(str(size - 1))
    text = f"Hello, World! I am process {rank:{width}d} of {size} on {MPI.Get_processor_name()}.\n"
    comm.Barrier()
    with Sequential(comm):
        if options.verbose:
            sys.stdout.write(text)
            sys.stdout.flush()
    comm.Barrier()
    return text


def ringtest(comm: MPI.Intracomm, args: Sequence[str] | None, verbose: bool) -> float:
    """Send a message round all ranks, and see that it comes back as it was.

    Args:
        comm: the ranks.
        args: the command line.
        verbose: what holds when that says nothing.
    """
    parser = parser_of("ringtest", verbose)
    parser.add_argument("-n", "--size", type=int, default=1, help="message size")
    parser.add_argument("-s", "--skip", type=int, default=0, help="number of warm-up iterations")
    parser.add_argument("-l", "--loop", type=int, default=1, help="number of iterations")
    options = parser.parse_args(args)
    comm.Barrier()
    elapsed = _elapsed(comm, options.size, options.loop, options.skip)
    if options.verbose and comm.Get_rank() == 0:
        print(
            f"time for {options.loop} loops = {elapsed:g} seconds "
            f"({comm.Get_size()} processes, {options.size} bytes)",
            flush=True,
        )
    return elapsed


def _elapsed(comm: MPI.Intracomm, size: int, loop: int, skip: int) -> float:
    rank, ranks = comm.Get_rank(), comm.Get_size()
    before, after = (rank - 1) % ranks, (rank + 1) % ranks
    sent, received = array("B", [PATTERN]) * size, array("B", [0]) * size
    started = MPI.Wtime()
    for turn in range(loop + skip):
        if turn == skip:
            started = MPI.Wtime()
        if ranks == 1:
            comm.Sendrecv(sent, after, 0, received, before, 0)
        elif rank == 0:
            comm.Send(sent, after, 0)
            comm.Recv(received, before, 0)
        else:
            comm.Recv(received, before, 0)
            comm.Send(received, after, 0)
    elapsed = MPI.Wtime() - started
    if loop + skip and received != sent:
        print(f"rank {rank}: the message that came is not the one that was sent", file=sys.stderr)
        comm.Abort(WRONG)
    return elapsed
