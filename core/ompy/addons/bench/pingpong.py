"""Messages between two ranks."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any, Final

from ompy import MPI
from ompy.addons import pkl5
from ompy.addons.bench import parser_of
from ompy.addons.bench.sizes import Row, Table, add_sizes, measured, sizes_of

# mpi4py's: iterations and warm-up of small, large and huge messages; bytes above which one is that
LOOPS: Final = (10000, 100, 1000, 10, 10, 1, 1 << 14, 1 << 20)


def pingpong(comm: MPI.Intracomm, args: Sequence[str] | None, verbose: bool) -> list[Row]:
    """Send messages to and fro between the first two ranks; one rank sends to itself.

    Args:
        comm: the ranks.
        args: the command line.
        verbose: what holds when that says nothing.
    """
    parser = parser_of("pingpong", verbose)
    add_sizes(parser, smallest=1, largest=1 << 30, loops=LOOPS)
    _add_options(parser)
    options = parser.parse_args(args)
    comm = _communicator(comm, options)
    pickled = options.pickle or options.outband
    allocate = _allocator(options.array)
    column = ("Bandwidth [MB/s]", "18.2f")
    wanted = options.verbose and comm.Get_rank() == 0
    table = Table(options, "# MPI PingPong Test", column, wanted)
    for size, loop, skip in sizes_of(options):
        messages: list[Any] = [allocate(size), None]
        if not pickled:
            messages = [[allocate(size), size, MPI.BYTE] for _ in range(2)]
        comm.Barrier()
        row = measured(size, loop, skip, _exchange(comm, pickled, *messages))
        table.add_row(row, loop, size / row[1] / 1e6)
    return table.rows


def _add_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    arrays = ["numpy", "cupy", "numba", "none"]
    add("-a", "--array", default="numpy", choices=arrays, help="use NumPy/CuPy/Numba arrays")
    add("-p", "--pickle", action="store_true", help="use pickle-based send and receive")
    add("--protocol", type=int, help="pickle protocol version")
    add(
        "-o", "--outband", action="store_true", help="use out-of-band pickle-based send and receive"
    )
    add("--threshold", type=int, help="size threshold for out-of-band pickle buffers")


def _communicator(comm: MPI.Intracomm, options: Namespace) -> MPI.Intracomm:
    """The communicator for what is to be sent, and the pickle told."""
    if (options.pickle or options.outband) and options.protocol is not None:
        MPI.pickle.PROTOCOL = options.protocol
    if not options.outband:
        return comm
    if options.threshold is not None:
        pkl5.pickle.THRESHOLD = options.threshold
    return pkl5.Intracomm(comm)


def _allocator(kind: str) -> Callable[[int], Any]:
    """What makes a message of so many bytes.

    Raises:
        NotImplementedError: it would be in the memory of a device.
    """
    if kind in ("cupy", "numba"):
        raise NotImplementedError(f"pingpong --array {kind}: memory of devices is not available")
    if kind == "numpy":
        try:
            from numpy import empty
        except ImportError:
            return bytearray
        return lambda size: empty(size, "B")
    return bytearray


def _exchange(comm: Any, pickled: bool, sent: Any, received: Any) -> Callable[[], float]:
    """What sends a message to and fro once: seconds one way."""
    size, rank = comm.Get_size(), comm.Get_rank()
    send, receive = (comm.send, comm.recv) if pickled else (comm.Send, comm.Recv)
    both = comm.sendrecv if pickled else comm.Sendrecv

    def exchange() -> float:
        started = MPI.Wtime()
        if size == 1:
            both(sent, 0, 0, received, 0, 0)
            both(sent, 0, 0, received, 0, 0)
        elif rank == 0:
            send(sent, 1, 0)
            receive(received, 1, 0)
        elif rank == 1:
            receive(received, 0, 0)
            send(sent, 0, 0)
        return (MPI.Wtime() - started) / 2

    return exchange
