"""Memory that somebody looks at when its window is freed, or it is given back: it stays his."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.proc

PROGRAM = """
import gc
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
SIZES = (100, 5000, 1 << 16, 1 << 21)
MAKERS = {
    "Create": lambda size: MPI.Win.Create(bytearray(size), comm=world),
    "Allocate": lambda size: MPI.Win.Allocate(size, 1, comm=world),
    "Allocate_shared": lambda size: MPI.Win.Allocate_shared(size, 1, comm=world),
}

def of_window(make):
    def made(size):
        window = make(size)
        return window, window.Free
    return made

def allocated(size):
    memory = MPI.Alloc_mem(size)
    return memory, lambda: MPI.Free_mem(memory)

def own(size):
    memory = MPI.buffer.allocate(size)
    return memory, memory.release

ways = [*map(of_window, MAKERS.values()), allocated, own]
looking = []
for number, way in enumerate(ways):
    for size in SIZES:
        exporter, give_back = way(size)
        for look in (lambda: numpy.frombuffer(exporter, "B"), lambda: memoryview(exporter)):
            looking.append((look(), number))
            numpy.asarray(looking[-1][0])[:] = number
        world.Barrier()
        give_back()
        del exporter, give_back, look
        gc.collect()
for way in ways:  # what is given back is used again
    for size in SIZES:
        exporter, give_back = way(size)
        numpy.frombuffer(exporter, "B")[:] = 99
        world.Barrier()
        give_back()
assert all((numpy.asarray(seen) == number).all() for seen, number in looking)
for seen, number in looking:
    numpy.asarray(seen)[:] = number + 1
print("well", flush=True)
"""


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("osc", ["", "^sm"])
def test_who_looks_at_memory_keeps_it(ranks: int, osc: str) -> None:
    words = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks)]
    words += ["--mca", "osc", osc] if osc else []
    program = PROGRAM
    if osc:  # without it no window has shared memory
        program = PROGRAM.replace(
            '    "Allocate_shared": lambda', '    # "Allocate_shared": lambda'
        )
    words += [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "well\n" * ranks), done.stderr
