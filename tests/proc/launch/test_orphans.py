"""Whoever is killed, and whenever: nothing of the job stays, no process and no file.

`OMPY_KILL_TRIALS` says how many random trials there are, `OMPY_KILL_SEED` where their seeds begin;
a trial's name is its seed, so `OMPY_KILL_TRIALS=1 OMPY_KILL_SEED=17` repeats trial 17.
"""

import os
import random
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from .conftest import PATIENCE, assert_gone, wait_until_asleep

pytestmark = pytest.mark.proc

TRIALS = int(os.environ.get("OMPY_KILL_TRIALS", "10"))
FIRST_SEED = int(os.environ.get("OMPY_KILL_SEED", "0"))

UP = "os.write(1, b'up\\n')\n"
MPI = (
    "import os, signal, sys, time\n"
    "from ompy.runtime.ranks.client import attach\n"
    "c = attach()\n"
    "c.memory('ring', 1 << 20)\n"
)
COMPUTE = "while True: pass\n"
SLEEP = "while True: time.sleep(1000)\n"
PROGRAMS = {
    "computing": [sys.executable, "-c", MPI + "c.commit()\n" + UP + COMPUTE],
    "sleeping": [sys.executable, "-c", MPI + "c.commit()\n" + UP + SLEEP],
    "waiting": [sys.executable, "-c", MPI + UP + "c.lookup(c.rank)"],
    "wrapped": [
        "sh", "-c", f'"{sys.executable}" -c "$0"; true', MPI + "c.commit()\n" + UP + COMPUTE,
    ],
    "forking": [
        sys.executable, "-c", MPI + "c.commit()\n" + UP + "os.fork()\n" + COMPUTE,
    ],
    "plain": [sys.executable, "-c", "import os, time\n" + UP + SLEEP],
    "not MPI": ["sh", "-c", "echo up; sleep 1000; true"],
    "hiding": ["sh", "-c", "(setsid sleep 1000 &) ; echo up; sleep 1000; true"],
    "stubborn": [
        sys.executable, "-c", MPI + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + UP + SLEEP,
    ],
}  # fmt: skip
MPI_PROGRAMS = ["computing", "sleeping", "waiting", "wrapped", "forking"]


def start(launch, names):
    arguments = []
    for name in names:
        arguments += [":"] * bool(arguments) + ["-n", 1, *PROGRAMS[name]]
    return launch.start(*arguments)


def wait_until_up(running, count):
    for _ in range(count):
        assert running.line() == "up"


def facts(pid):
    """Name, parent, process group and session of a process; empty and zeros if it has gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "", 0, 0, 0
    name = text.partition("(")[2].rpartition(")")[0]
    return name, *map(int, text.rpartition(")")[2].split()[1:4])


def ignores(pid, number):
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    return bool(int(text.partition("SigIgn:")[2].split()[0], 16) >> (number - 1) & 1)


def find_agent(processes):
    for pid in processes():
        if facts(pid)[0] == "ompy-agent":
            return pid
    return None


def find_ranks(processes, agent):
    """Children of the agent with their own group in its session; not what it has adopted."""
    return [pid for pid in processes() if facts(pid)[1:] == (agent, pid, agent)]


def choose_victim(chance, processes, running, number):
    """The launcher, the agent or a rank, as far as they exist already."""
    agent = find_agent(processes)
    ranks = find_ranks(processes, agent)
    if number == signal.SIGINT:  # a shell between us and the program may ignore it
        ranks = [pid for pid in ranks if facts(pid)[0] != "sh"]
    elif number == signal.SIGTERM:
        ranks = [pid for pid in ranks if not ignores(pid, number)]
    kind = chance.choice(["launcher", "agent", "rank"])
    if kind == "rank" and ranks:
        return kind, chance.choice(ranks)
    if kind == "agent" and agent is not None:
        return kind, agent
    return "launcher", running.pid


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + TRIALS))
def test_kill_trial(launch, processes, seed):
    chance = random.Random(seed)
    names = chance.sample(sorted(set(PROGRAMS) - {"stubborn"}), 4)
    names += ["stubborn"] * (chance.random() < 0.15)
    running = start(launch, names)
    running_already = chance.random() < 0.5
    if running_already:
        wait_until_up(running, len(names))
        time.sleep(chance.random() * 0.02)
    else:
        time.sleep(chance.random() * 0.4)
    number = chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    kind, victim = choose_victim(chance, processes, running, number)
    print(f"seed {seed}: {names}, up: {running_already}, {number.name} to {kind} {victim}")
    try:
        os.kill(victim, number)
    except ProcessLookupError:  # a child between fork and exec; the job is killed with us
        running.signal(signal.SIGKILL)
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])
    assert running.end().code != 0


@pytest.mark.parametrize("name", [*MPI_PROGRAMS, "plain"])
def test_processes_die_with_their_agent_though_nobody_kills_them(launch, processes, name):
    """The launcher is stopped, so only the kernel is left to do it."""
    running = start(launch, [name, name])
    wait_until_up(running, 2)
    running.signal(signal.SIGSTOP)
    os.kill(find_agent(processes), signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while set(processes()) - {running.pid}:
        assert time.monotonic() < deadline, processes()
        time.sleep(0.005)
    running.signal(signal.SIGCONT)
    result = running.end()
    assert result.code == 1
    assert "The process that looks after the ranks of a host is gone" in result.err


def test_launcher_and_agent_die_together(launch, processes):
    running = start(launch, MPI_PROGRAMS)
    wait_until_up(running, len(MPI_PROGRAMS))
    agent = find_agent(processes)
    os.kill(running.pid, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])


def test_an_agent_that_does_not_answer_is_killed(launch, processes):
    running = start(launch, ["sleeping", "not MPI"])
    wait_until_up(running, 2)
    os.kill(find_agent(processes), signal.SIGSTOP)
    running.signal(signal.SIGINT)
    running.signal(signal.SIGTERM)  # told twice, the launcher waits for nothing
    assert running.end().code in {130, 143}
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])


def test_what_a_rank_leaves_behind_ends_with_the_job(launch, processes):
    """Also if it has a session of its own; and not before the other ranks are done."""
    leaver = ["sh", "-c", "(setsid sleep 1000 &) ; true"]
    running = launch.start("-n", 1, *leaver, ":", "-n", 1, "sh", "-c", "echo up; read x; echo x$x")
    running.process.stdout.close()
    running.signal(signal.SIGKILL)
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])
    result = launch("-n", 1, *leaver, ":", "-n", 1, "true")
    assert result.code == 0
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])


def test_output_until_the_death_of_a_rank_is_shown(launch):
    code = "import os; os.write(1, b'last words'); os.kill(os.getpid(), 9)"
    result = launch.python(1, code)
    assert (result.code, result.out) == (137, "last words")


def test_ranks_in_a_closed_pipe_end_with_the_launcher(launch):
    """They are blocked in write when the launcher goes."""
    running = launch.start("-n", 2, "yes")
    select.select([running.process.stdout], [], [])
    running.signal(signal.SIGKILL)
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])


def test_nothing_outlives_the_agent_while_output_is_stuck(launch, processes):
    """The launcher waits for its reader, with everything else already gone."""
    both = ["-n", 1, "yes", ":", "-n", 1, *PROGRAMS["hiding"]]
    running = launch.start(*both)
    select.select([running.process.stdout], [], [])
    wait_until_asleep(processes())
    os.kill(find_agent(processes), signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while set(processes()) - {running.pid}:
        assert time.monotonic() < deadline, processes()
        time.sleep(0.005)
    assert running.process.poll() is None
    assert running.end().code == 1
