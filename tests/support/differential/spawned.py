"""Random mixtures in which some ranks were spawned by the others.

All of them are one program, in the communicator that the two groups merge to; the one between them
is there, too.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from ompy import MPI

from tests.support.differential.communicators import Members
from tests.support.differential.mixtures import run as run_mixture
from tests.support.differential.program import Judge, Program, some

CHILDREN: Final = 2  # at most
ROOT: Final = 0


def run(program: Program) -> None:
    """Spawn some, and run a mixture with them."""
    count = program.chance.randint(1, CHILDREN)
    words = ["-m", "tests.support.differential.spawned"]
    between = program.comm.Spawn(sys.executable, words, count, root=ROOT)
    root = MPI.ROOT if program.me == ROOT else MPI.PROC_NULL
    between.bcast(program.seed, root)
    run_together(between, program.seed, program.judge)


def run_together(between: Any, seed: int, judge: Judge) -> None:
    """What parents and children do alike; the parents come first."""
    is_child = between == MPI.Comm.Get_parent()
    merged = between.Merge(is_child)
    program = Program(merged, seed, judge, one_world=False)
    sizes = between.Get_remote_size(), between.Get_size()
    first = sizes[0] if is_child else sizes[1]
    ranks = list(range(merged.size))
    inter = between.Dup() if some(program.chance, 0.3) else between
    run_mixture(program, [Members(program.me, inter, [ranks[:first], ranks[first:]], "spawned")])
    if inter != between:
        inter.Free()
    merged.Free()
    between.Disconnect()


def main() -> None:
    """A child's part."""
    MPI.Attach_buffer(bytearray(1 << 26))
    between = MPI.Comm.Get_parent()
    run_together(between, between.bcast(None, ROOT), Judge())
    MPI.Detach_buffer()


if __name__ == "__main__":
    main()
