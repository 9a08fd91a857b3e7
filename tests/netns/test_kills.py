"""No orphan, whoever of a job is killed and when: by ssh, in an allocation, and by srun alone.

`OMPY_KILL_EACH` says how many times each, `OMPY_KILL_FIRST` where their numbers begin. A trial's
name and number are its seed. `tools/sweep host_kills` does fifty and makes the table; it sets
`OMPY_KILL_RECORD`, a file that gets a line of JSON for each.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH

from .conftest import OMPY_RUN, PATIENCE, Lab

FIRST = int(os.environ.get("OMPY_KILL_FIRST", "0"))
EACH = int(os.environ.get("OMPY_KILL_EACH", "1"))
RECORD = os.environ.get("OMPY_KILL_RECORD", "")
pytestmark = [pytest.mark.proc, pytest.mark.netns]
by_slurm = pytest.mark.skipif(
    not THOROUGH or shutil.which("slurmctld") is None, reason="tools/sweep host_kills, with Slurm"
)

FOUR = ("--host", "h1,h2,h3,h4")
# computing, waiting for a message, and processes that have left their session
BUSY = """
import subprocess
from ompy import MPI
c = MPI.COMM_WORLD
subprocess.Popen(["setsid", "sleep", "1000"])
c.Barrier()
print("up", flush=True)
if c.rank % 2: c.recv(source=c.rank)
while True: pass
"""
# under srun nobody would end what has left a task's process group
TASK = BUSY.replace('subprocess.Popen(["setsid", "sleep", "1000"])\n', "")


class Found:
    """A process of a laboratory."""

    def __init__(self, host, pid, words):
        self.host, self.pid, self.words = host, pid, words
        self.name, self.parent = facts_of(pid)

    def is_a(self, kind):
        """Whether it is one of those that are called so here."""
        if kind == "launcher":
            mine, parents = self.words.split(), words_of(self.parent)
            begins = [words[: len(OMPY_RUN)] == OMPY_RUN for words in (mine, parents)]
            return begins == [True, False]
        if kind != "sshd" and facts_of(self.parent)[0] == self.name == kind:
            return False  # about to become something else; srun's cleans up: nobody misses these
        if kind == "rank":
            return self.name.startswith("python") and " -c " in self.words and "MPI" in self.words
        return self.name == kind


def facts_of(pid):
    """Name and parent of a process; nothing if it has gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "", 0
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, int(rest.split()[1])


def words_of(pid):
    """The command line of a process; nothing if it has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def everybody(lab):
    """All processes of the job on all hosts; srun and step daemons among them."""
    return [
        Found(host, pid, words)
        for host in lab.hosts
        for pid, words in Lab.processes(lab, host).items()
    ]


def await_victims(lab, kind):
    """As soon as there are any: a random moment may be before that."""
    deadline = time.monotonic() + PATIENCE
    while not (found := [there for there in everybody(lab) if there.is_a(kind)]):
        assert time.monotonic() < deadline, (kind, lab.everything())
    return found


def await_nobody(lab):
    """Step daemons of the job before take a moment, and are not to be taken for this one's."""
    deadline = time.monotonic() + PATIENCE
    while left := [there.words for there in everybody(lab)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def at_some_moment(chance, job, count, *, late=False):
    """While it starts, or when all ranks are up. Says which."""
    if late or chance.random() < 0.5:
        for _ in range(count):
            assert job.stdout.readline() == "up\n", job.stderr.read()
        time.sleep(chance.random() / 4)
        return "all ranks up"
    time.sleep(chance.random() * 2)
    return "starting"


def kill_one(chance, lab, kind):
    """Kill one of these, at random. Which it was.

    One that has ended meanwhile (sshd has processes that live for a login) has not been killed.
    """
    while True:
        victim = chance.choice(await_victims(lab, kind))
        if facts_of(victim.pid) == (victim.name, victim.parent):
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGKILL)
                return victim


def record(how, kind, number, **more):
    """For the table."""
    line = {"how": how, "victim": kind, "number": number, **more}
    print(line)
    if RECORD:
        with open(RECORD, "a") as file:
            file.write(json.dumps(line) + "\n")


def passed_before():
    """Trials that an earlier run of the same command has done."""
    if not RECORD or not Path(RECORD).exists():
        return set()
    lines = map(json.loads, Path(RECORD).read_text().splitlines())
    return {(line["how"], line["victim"], line["number"]) for line in lines}


BEFORE = passed_before()


def trials(how, kinds, first=FIRST):
    """Names of trials: every kind in turn."""
    wanted = [(kind, number) for number in range(first, first + EACH) for kind in kinds]
    return [trial for trial in wanted if (how, *trial) not in BEFORE]


# a step daemon that is killed before its agent is ready: srun notices nothing for minutes
START_TIMEOUT = ("--mca", "plm_base_start_timeout_ms", "20000")


def kill_in_a_job(lab, how, kind, number, *options, within):
    """A job of ompy-run, with a tree of agents that is flat, deep or in between."""
    chance = random.Random(f"{how} {kind} {number}")
    radix = chance.choice([1, 2] if kind == "ompy-relay" else [1, 2, 64])
    options = ("--mca", "plm_base_radix", radix, *START_TIMEOUT, *options)
    await_nobody(lab)
    job = lab.ompy_run(*options, sys.executable, "-c", BUSY)
    moment = at_some_moment(chance, job, 4)
    victim = kill_one(chance, lab, kind)
    killed = time.monotonic()
    job.communicate(timeout=PATIENCE)
    ended = time.monotonic() - killed
    # of the launcher's end salloc tells nothing
    assert job.returncode != 0 or (how, kind) == ("slurm", "launcher")
    lab.assert_empty(within=within)
    empty = time.monotonic() - killed
    time.sleep(0.2)
    lab.assert_empty(within=0)  # nor does anything begin that was on its way
    where = {"radix": radix, "host": victim.host, "moment": moment}
    record(how, kind, number, **where, ended_s=round(ended, 2), empty_s=round(empty, 2))


SHELLS = ("launcher", "ompy-agent", "ompy-relay", "ssh", "ompy-guard", "sshd")
QUICK = [("ompy-relay", 1), ("ompy-agent", 0)]


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "number"), trials("ssh", SHELLS) if THOROUGH else QUICK)
def test_by_ssh(lab, kind, number):
    kill_in_a_job(lab, "ssh", kind, number, *FOUR, within=5)


STEPS = ("launcher", "ompy-agent", "ompy-relay", "srun", "ompy-guard", "slurmstepd")


@by_slurm
@pytest.mark.parametrize(("kind", "number"), trials("slurm", STEPS))
def test_in_an_allocation(slurm_lab, kind, number):
    kill_in_a_job(slurm_lab, "slurm", kind, number, "-n", 4, "--map-by", "node", within=20)


def ends(lab, within):
    """Whether nothing but srun is left, soon."""
    deadline = time.monotonic() + within
    while not all(there.name == "srun" for there in everybody(lab)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def has_come_up(job, count):
    """Whether all ranks say that they have begun MPI; their job is whole then."""
    return [job.stdout.readline() for _ in range(count)] == ["up\n"] * count


TASKS = ("ompy-agent", "rank", "srun", "slurmstepd")


@by_slurm
@pytest.mark.parametrize(("kind", "number"), trials("srun", TASKS))
def test_by_srun_alone(slurm_lab, kind, number):
    """With and without -K; without its step daemon Slurm itself knows nothing of a host."""
    chance = random.Random(f"srun {kind} {number}")
    options = chance.choice([("-K",), ("-K0",)])
    words = ("srun", "-Q", "-N4", "-n4", *options, sys.executable, "-c", TASK)
    await_nobody(slurm_lab)
    job = slurm_lab.start("h1", *words)
    moment = at_some_moment(chance, job, 4, late=kind == "slurmstepd")
    victim = kill_one(chance, slurm_lab, kind)
    killed = time.monotonic()
    slow = kind in {"srun", "slurmstepd"}  # Slurm takes its time to notice
    within = 60 if slow else 10
    harmless = moment == "starting" and not ends(slurm_lab, within) and has_come_up(job, 4)
    if harmless:  # who had started the agent had not met it yet, and started another
        job.terminate()
        killed = time.monotonic()
    slurm_lab.assert_empty(within=within, but="srun")
    empty = time.monotonic() - killed
    time.sleep(0.2)
    slurm_lab.assert_empty(within=0, but="srun")  # nor does anything begin that was on its way
    where = {"options": options, "host": victim.host, "moment": moment, "harmless": harmless}
    record("srun", kind, number, **where, empty_s=round(empty, 2))
