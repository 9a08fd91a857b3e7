"""The program of a pool's ranks: `python -m pytest_ompy.worker`, started by the controller."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from pathlib import Path

import ompy
import pytest

from pytest_ompy import channel as channels
from pytest_ompy import debugger
from pytest_ompy.rank import RankSession
from pytest_ompy.stacks import STACK_SIGNAL, greenlets


def main() -> int:
    """Be a rank of a pool. Returns pytest's exit code."""
    rank = int(os.environ["OMPY_RANK"])
    channel = channels.register_rank(rank, _install_stack_dump())
    debugger.use(channel, rank)
    start = channel.receive()
    _use_path(start["path"])
    from ompy import MPI

    MPI.COMM_WORLD.barrier()
    session = RankSession(channel, start)
    code = int(pytest.main(start["arguments"], plugins=[session]))
    if session.hurry:
        os._exit(code)
    return 0 if session.checked else code


def _install_stack_dump() -> int:
    """Write this process's stacks to an anonymous file on `STACK_SIGNAL`. Returns the file.

    First `faulthandler` writes them, whatever the process does. Then Python's own handler adds
    the greenlets, if the interpreter comes to run it: a rank that waits long sleeps in another one.
    """
    stacks = os.memfd_create("stacks")
    signal.signal(STACK_SIGNAL, lambda _number, _frame: os.write(stacks, greenlets().encode()))
    faulthandler.register(STACK_SIGNAL, file=stacks, all_threads=True, chain=True)
    return stacks


def _use_path(path: list[str]) -> None:
    """Import as the controller does, but MPI from the drop-in package."""
    dropin = str(Path(ompy.__file__).parent / "dropin")
    sys.path[:] = [dropin, *(entry for entry in path if entry != dropin)]


if __name__ == "__main__":
    sys.exit(main())
