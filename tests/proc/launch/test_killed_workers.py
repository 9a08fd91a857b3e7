"""Workers that a pool has started die, whenever: the program goes on, and no process stays.

`OMPY_WORKER_TRIALS` says how many random trials there are; a trial's name is its seed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.effort import effort

from .conftest import assert_gone

pytestmark = pytest.mark.proc

TRIALS = int(os.environ.get("OMPY_WORKER_TRIALS", effort(2)))
KILLED = 128 + signal.SIGKILL
PROGRAM = """
import os, sys, time
from mpi4py.futures import BrokenExecutor, MPIPoolExecutor

def nap(seconds):
    time.sleep(seconds)
    return os.getpid()

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

if __name__ == "__main__":
    count, seconds = int(sys.argv[1]), float(sys.argv[2])
    say("client", os.getpid())
    for _ in range(2):
        pool = MPIPoolExecutor(count)
        futures = [pool.submit(nap, seconds) for _ in range(40)]
        try:
            say("workers", *{future.result() for future in futures[: 3 * count]})
        except BrokenExecutor:
            say("broken early")
        ends = {type(future.exception()).__name__ for future in futures}
        try:
            pool.submit(nap, 0).result()
            ends.add("served")
        except BrokenExecutor:
            ends.add("refused")
        pool.shutdown()
        say("ends", *sorted(ends))
"""
# what becomes of a pool: all is done, or it breaks, which each later call says; its worker may die
# when all is done
ENDS = {
    "ends NoneType served",
    "ends BrokenExecutor refused",
    "ends BrokenExecutor NoneType refused",
    "ends NoneType refused",
}


def later_ranks(processes, client: int) -> list[int]:
    """The ranks that have been started by now, without the first."""
    found = []
    for pid in processes():
        try:
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if pid != client and any(word.startswith(b"OMPY_RANK=") for word in words):
            found.append(pid)
    return sorted(found)


def was_killed(pid: int) -> bool:
    """End a process; whether it was still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("seed", range(TRIALS))
def test_a_started_worker_is_killed(launch, processes, tmp_path, seed):
    chance = random.Random(seed)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    count = chance.choice([1, 2, 3])
    way = chance.choice([(), ("--mca", "btl", "self,tcp"), ("--mca", "plm_base_fork_ranks", 0)])
    running = launch.start("-n", 1, *way, sys.executable, path, count, chance.random() / 50)
    client = int(running.line().split()[1])
    if chance.random() < 0.7:
        running.line()  # they serve
        time.sleep(chance.random() / 2)
    else:
        time.sleep(chance.random() * 3)
    found = later_ranks(processes, client)
    victim = chance.choice(found) if found and chance.random() < 0.9 else client
    print(f"seed {seed}: {count} workers, {way}, kills {victim} of {found}, client {client}")
    killed = was_killed(victim)
    result = running.end()
    print(killed, result)
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])
    if killed and victim == client:
        assert result.code == KILLED
        return
    if killed and result.code == KILLED:  # it did not serve yet, or any more: a rank as any other
        assert "was killed by signal 9" in result.err
        return
    assert result.code == 0
    ends = [line for line in result.out.splitlines() if line.startswith("ends")]
    assert len(ends) == 2
    assert set(ends) <= ENDS
