"""Large eager messages between real processes, by threads, late and in every order.

Compiled, a sender that has a core lends them (`btl/sm/lending.py`), and writes over each as soon as
it may.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc

PROGRAM = """
import random, sys, threading, time
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
rank, seed = world.rank, sys.argv[1]
wrong = []

def data_of(size, *key):
    made = np.full(size, hash(key) % 251, "u1")
    made[-1], made[size // 2] = key[0] % 256, key[1]
    return made

def compare(got, *key):
    if not np.array_equal(got, data_of(len(got), *key)):
        wrong.append((len(got), *key))

def exchange(comm, name):
    chance, own = random.Random(f"{seed} {name}"), random.Random(f"{seed} {name} {rank}")
    for step in range(60):
        plan = [
            (chance.randrange(2), chance.choice((100, 4096, 9000, 13000, 60000, 131000, 140000)),
             chance.choice(("array", "object")), chance.random() < 0.3, tag)
            for tag in range(chance.randint(1, 6))
        ]
        sends, receives = [], []
        for source, size, kind, late, tag in plan:
            if source != rank and not late and kind == "array":
                room = np.zeros(size, "u1")
                receives.append((comm.Irecv(room, source, tag), room, (step, tag, source)))
        pause = time.perf_counter() + own.random() * 3e-4 * (own.random() < 0.3)
        while time.perf_counter() < pause:
            pass
        if own.random() < 0.05:
            time.sleep(own.random() * 2e-3)
        for source, size, kind, late, tag in plan:
            if source == rank:
                data = data_of(size, step, tag, source)
                begin = comm.Isend if kind == "array" else comm.isend
                sends.append((begin(data, 1 - rank, tag), data))
        for source, size, kind, late, tag in plan:
            if source != rank and kind == "object":
                compare(comm.recv(source=source, tag=tag), step, tag, source)
            elif source != rank and late:
                room = np.zeros(size, "u1")
                comm.Recv(room, source, tag)
                compare(room, step, tag, source)
        for request, room, key in receives:
            request.Wait()
            compare(room, *key)
        for request, data in sends:
            request.Wait()
            data[:] = 255

own = [world.Dup() for _ in range(2)]
threads = [threading.Thread(target=exchange, args=(comm, n)) for n, comm in enumerate(own)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
exchange(world, "alone")
assert not wrong, wrong
"""


@pytest.mark.parametrize("patience", [0, 1, 100])
@pytest.mark.parametrize("seed", range(6 if THOROUGH else 1))
def test_what_is_received_is_what_was_sent(seed: int, patience: int) -> None:
    words = [sys.executable, "-m", "ompy.cli.run", "-n", "2", "--mca", "btl", "self,sm"]
    words += ["--mca", "btl_sm_lend_least", "4200"]
    words += ["--mca", "btl_sm_lend_patience", str(patience)]
    done = subprocess.run(
        [*words, sys.executable, "-c", PROGRAM, str(seed)],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
