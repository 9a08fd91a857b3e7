"""`--spares`: a Spawn takes processes that wait, and starts others when there are none left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RUN = [sys.executable, "-m", "ompy.cli.run"]
PATIENCE = 120.0  # s; far beyond what anything here takes, beside many others too
pytestmark = pytest.mark.proc

PROGRAM = """
import os, sys, time
from mpi4py import MPI

def begun(process):  # in clock ticks since the machine was started
    return int(open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[19])

parents = MPI.Comm.Get_parent()
if parents == MPI.COMM_NULL:
    time.sleep(0.5)
    for spawned in range(3):
        now = round(float(open("/proc/uptime").read().split()[0]) * os.sysconf("SC_CLK_TCK"))
        words = ["-c", sys.argv[1], sys.argv[1]]
        children = MPI.COMM_WORLD.Spawn(sys.executable, words, maxprocs=1)
        facts = children.recv(source=0)
        print(facts[0] < now, *facts[1:], flush=True)
        children.Disconnect()
else:
    facts = begun(os.getpid()), os.getcwd(), len(sys.argv), MPI.COMM_WORLD.size
    facts += (os.environ.get("SHOWN"),)
    parents.send(facts, 0)
    parents.Disconnect()
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [*RUN, *words, sys.executable, "-c", PROGRAM, PROGRAM]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, check=False
    )


@pytest.mark.parametrize("spares", [0, 2, 5])
def test_spawn_takes_those_that_wait(spares: int) -> None:
    done = run("-n", "1", "--spares", str(spares), "-x", "SHOWN=1")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == [str(number < spares) for number in range(3)]
    assert {tuple(row[1:]) for row in rows} == {(str(ROOT), "2", "1", "1")}


def test_a_program_that_is_executed_takes_none() -> None:
    done = run("-n", "1", "--spares", "3", "--mca", "plm_base_fork_ranks", "0")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["False"] * 3


KILLS = """
import os, signal, sys, time
from mpi4py import MPI

def waiting():  # children of the agent that are neither this rank nor have become one
    agent = os.getppid()
    found = open(f"/proc/{agent}/task/{agent}/children").read().split()
    return {int(pid) for pid in found} - {os.getpid()}

parents = MPI.Comm.Get_parent()
if parents == MPI.COMM_NULL:
    wanted = int(sys.argv[2])
    killed = set()
    for _ in range(int(sys.argv[3])):
        while not len(waiting() - killed) == wanted:
            time.sleep(0.01)
        victim = min(waiting() - killed)
        killed.add(victim)
        os.kill(victim, signal.SIGKILL)
    while victim in waiting():
        time.sleep(0.01)
    time.sleep(0.3)  # a replacement would be there
    ready = waiting() - killed
    words = ["-c", sys.argv[1], *sys.argv[1:]]
    children = MPI.COMM_WORLD.Spawn(sys.executable, words, maxprocs=1)
    print(len(killed), len(ready), children.recv(source=0) in ready, flush=True)
    children.Disconnect()
else:
    parents.send(os.getpid(), 0)
    parents.Disconnect()
"""


@pytest.mark.parametrize(("kills", "left", "taken"), [(1, 1, True), (2, 0, False)])
def test_one_that_died_before_use_is_replaced(kills: int, left: int, taken: bool) -> None:
    """As often as there are spares: the second to be killed leaves none, and Spawn starts one."""
    command = [*RUN, "-n", "1", "--spares", "1", sys.executable, "-c", KILLS]
    done = subprocess.run(
        [*command, KILLS, "1", str(kills)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(kills), str(left), str(taken)]
