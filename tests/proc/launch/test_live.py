"""A job that runs is listed and watched from another process, of which nothing is left."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.proc.launch.conftest import PATIENCE, wait_until_asleep

pytestmark = pytest.mark.proc
OMPY = [sys.executable, "-m", "ompy.cli.main"]
# rank 0 computes until a file is there; the others wait for it
PROGRAM = """
from mpi4py import MPI
import os, sys, time
comm = MPI.COMM_WORLD
if comm.rank == 1:
    comm.send(b"x" * 100_000, dest=2)
if comm.rank == 2:
    comm.recv(source=1)
print("up", flush=True)
if comm.rank == 0:
    while not os.path.exists("go"):
        time.sleep(0.01)
    comm.send("now", dest=1)
if comm.rank == 1:
    comm.recv(source=0)  # rank 1 waits here
comm.Barrier()
"""
RANKS = 3


class Watched:
    """A job in a folder of its own, and commands beside it."""

    def __init__(self, launch, folder):
        self.folder = folder
        self.sockets = folder / "run" / "ompy"
        (folder / "run").mkdir(mode=0o700)
        self._environment = {**launch.environment, "XDG_RUNTIME_DIR": str(folder / "run")}
        self._launch = launch

    def start(self, *options):
        (self.folder / "app.py").write_text(PROGRAM)
        words = ["-n", RANKS, *options, sys.executable, "app.py"]
        job = self._launch.start(*words, env=self._environment)
        for _ in range(RANKS):
            assert job.line() == "up"
        return job

    def ompy(self, *words):
        return subprocess.run(
            [*OMPY, *words],
            env=self._environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def until(self, *words, says):
        """Ask until it is so."""
        deadline = time.monotonic() + PATIENCE
        while True:
            done = self.ompy(*words)
            if done.returncode == 0 and all(text in done.stdout for text in says):
                return done.stdout
            assert time.monotonic() < deadline, done

    def go(self):
        (self.folder / "go").touch()

    def files(self):
        return sorted(path.name for path in self.sockets.iterdir())


@pytest.fixture
def watched(launch, tmp_path):
    return Watched(launch, tmp_path)


def test_a_job_is_listed_and_leaves_nothing(watched):
    assert watched.ompy("ps").stdout == ""
    job = watched.start()
    text = watched.until("ps", says=["app.py"])
    assert str(job.pid) in text
    (said,) = json.loads(watched.ompy("ps", "--json").stdout)
    assert (said["pid"], said["ranks"], said["phase"]) == (job.pid, RANKS, "running")
    assert watched.files() == [f"{said['job']}-{job.pid}{end}" for end in (".key", ".sock")]
    watched.go()
    assert job.end().code == 0
    assert watched.files() == []
    assert watched.ompy("ps").stdout == ""


def test_what_ranks_are_in(watched):
    job = watched.start()
    lines = ["comm.Barrier()", "comm.recv(source=0)  # rank 1 waits here", "messages sent"]
    text = watched.until("top", "--once", says=[*lines, "waits"])
    first, second, third = [one for one in text.splitlines() if one[:1].isdigit()][:RANKS]
    assert "app.py" in first
    assert " runs " in first
    assert "rank 1 waits here, waiting for receive from rank 0" in second
    assert " waits " in third
    answer = json.loads(watched.ompy("top", str(job.pid), "--json").stdout)
    assert [2, 1] in answer["ranks"][1]["messages"], "rank 1 has sent one message to rank 2"
    before = answer["ranks"][1]["for_s"]
    again = json.loads(watched.ompy("top", answer["about"]["job"][:6], "--json").stdout)
    assert again["ranks"][1]["for_s"] > before > 0, "to be asked ends no sleep"
    stacks = watched.ompy("top", "--stacks").stdout
    assert "rank 1, MainThread" in stacks
    assert "app.py:16 in <module>" in stacks
    wanted = ["rank 1 is at", "waiting for a message from rank 0 with"]
    watched.until("top", "--autopsy", says=wanted)
    watched.go()
    ended = job.end()
    assert (ended.code, ended.err) == (0, ""), "nobody who is watched says anything of it"


def test_bytes_where_the_transport_counts_them(watched):
    job = watched.start("--mca", "btl", "self,tcp")
    text = watched.until("top", "--once", says=["bytes sent"])
    assert "100k" in text.partition("bytes sent")[2]
    watched.go()
    assert job.end().code == 0


def test_a_stranger_learns_nothing(watched):
    job = watched.start()
    watched.until("ps", says=["app.py"])
    (name,) = watched.sockets.glob("*.sock")
    folder = os.open(watched.sockets, os.O_RDONLY)
    try:
        for first in (b'{"ask":"ranks"}\n', b'{"key":"0000"}\n{"ask":"ranks"}\n'):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.settimeout(PATIENCE)
                stranger.connect(f"/proc/self/fd/{folder}/{name.name}")
                stranger.sendall(first)
                assert closed_without_a_word(stranger)
    finally:
        os.close(folder)
    watched.until("ps", says=["app.py"])
    watched.go()
    assert job.end().code == 0


def closed_without_a_word(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_what_a_killed_launcher_leaves_goes_when_jobs_are_listed(watched):
    job = watched.start()
    watched.until("ps", says=["app.py"])
    job.signal(signal.SIGKILL)
    job.end()
    assert len(watched.files()) == 2
    assert "no job" in watched.ompy("ps").stderr
    assert watched.files() == []
    done = watched.ompy("top", "--once")
    assert done.returncode == 1
    assert "there is no job of yours that runs on this host" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_ended_leaves_nothing(watched, number):
    job = watched.start()
    watched.until("ps", says=["app.py"])
    job.signal(number)
    assert job.end().code == 128 + number
    assert watched.files() == []


def test_two_jobs_need_a_name(watched):
    one, other = watched.start(), watched.start()
    watched.until("ps", says=[str(one.pid), str(other.pid)])
    done = watched.ompy("top", "--once")
    assert done.returncode == 1
    assert "more than one job" in done.stderr
    assert watched.ompy("top", "--once", str(other.pid)).returncode == 0
    watched.go()
    assert one.end().code == other.end().code == 0


def test_a_job_runs_where_there_can_be_no_socket(watched):
    watched.sockets.mkdir(mode=0o777)
    watched.sockets.chmod(0o777)
    job = watched.start()
    time.sleep(0.5)  # arbitrary: a socket would be there by then, mostly
    assert watched.files() == []
    assert "open to others" in watched.ompy("ps").stderr
    watched.go()
    ended = job.end()
    assert (ended.code, ended.err) == (0, "")


def test_a_job_nobody_watches_is_let_sleep(watched, processes):
    """The socket costs no turns: nothing happens in the launcher while nobody connects."""
    job = watched.start()
    watched.until("ps", says=["app.py"])
    wait_until_asleep([job.pid])
    quiet = False
    for _ in range(10):  # on a busy machine ranks say late that they sleep
        before = turns(job.pid)
        time.sleep(1)
        quiet = turns(job.pid) == before
        if quiet:
            break
    assert quiet
    watched.go()
    assert job.end().code == 0


def turns(pid):
    """How often a process has slept."""
    status = Path(f"/proc/{pid}/status").read_text()
    return [line for line in status.splitlines() if line.startswith("voluntary_ctxt")]


def test_top_in_a_pipe_says_what_does_without_a_terminal(watched):
    job = watched.start()
    done = watched.ompy("top")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ompy top: error: ")
    assert "--once" in done.stderr
    watched.go()
    assert job.end().code == 0


def test_a_view_needs_a_terminal(watched):
    done = watched._launch("-n", 1, "--view", sys.executable, "-c", "pass")
    assert done.code == 2
    assert "--view needs a terminal" in done.err
