"""Hosts, rails, agents and remote shells that go in the middle of a job."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH

pytestmark = [pytest.mark.proc, pytest.mark.netns]

FOUR = ("--host", "h1:2,h2:2,h3:2,h4:2")

# each rank says that it is up, and writes down when it was told to end
WAITING = """
import os, pathlib, signal, sys, time
from ompy import MPI
c = MPI.COMM_WORLD
def end(*_):
    note = pathlib.Path(sys.argv[1], str(c.rank))
    draft = note.with_suffix(".draft")
    draft.write_text(str(time.monotonic()))
    draft.rename(note)  # it is there, and whole
    os._exit(0)
signal.signal(signal.SIGTERM, end)
c.Barrier()
print("up", flush=True)
while True: time.sleep(1000)
"""


def await_up(process, count):
    for _ in range(count):
        assert process.stdout.readline() == "up\n", process.stderr.read()


def name_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def named(lab, host, name):
    return [pid for pid in lab.processes(host) if name_of(pid) == name]


@pytest.mark.nightly
def test_a_dead_host_ends_the_job_everywhere(lab, tmp_path):
    """All its cables at once: no packet says so. Its own ranks end too, by themselves."""
    patience = ("--mca", "plm_base_launcher_misses", "8")
    job = lab.ompy_run(*FOUR, *patience, sys.executable, "-c", WAITING, tmp_path)
    await_up(job, 8)
    time.sleep(0.5)  # the first heartbeats
    lab("crash", "h3")
    died = time.monotonic()
    try:
        _, err = job.communicate(timeout=30)
        assert job.returncode == 1
        assert "host        h3" in err
        assert "Nothing was heard of it for" in err
        told = [float((tmp_path / str(rank)).read_text()) - died for rank in (0, 1, 2, 3, 6, 7)]
        print(f"ranks were told after {min(told):.2f} to {max(told):.2f} s")
        assert max(told) < 4  # under 2 s on a machine that does nothing else
        lab.assert_empty(within=10, but="sshd")  # not ours, and waits for its own network
    finally:
        lab("revive", "h3")


RAILS = ("--mca", "btl_tcp_if_include", "10.77.0.0/16")
EXCHANGING = """
import time
from ompy import MPI
c = MPI.COMM_WORLD
big, there = bytearray(4_000_000), bytearray(4_000_000)
c.Barrier()
print("up", flush=True)
try:
    while True: c.Sendrecv(big, 1 - c.rank, recvbuf=there, source=1 - c.rank)
except MPI.Exception as problem:
    print(time.monotonic(), problem, flush=True)
    time.sleep(3)  # so that both say it
"""
# so many small messages that the window is shut, to a rank that computes for longer than silence
BUSY_PEER = """
import time
from ompy import MPI
c = MPI.COMM_WORLD
c.Barrier()
if c.rank: time.sleep(6)
there = bytearray(60_000)
sent = [c.Isend(bytes(60_000), 1) for _ in range(400)] if not c.rank else []
for _ in range(400 * c.rank): c.Recv(there, 0)
MPI.Request.Waitall(sent)
print("all", flush=True)
"""


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_a_rail_that_dies_in_mid_job_is_named_with_the_peer(lab):
    """ob1 has no failover, so the message fails; no packet says that the cable is out."""
    job = lab.ompy_run("--host", "h1,h2", *RAILS, sys.executable, "-c", EXCHANGING)
    await_up(job, 2)
    time.sleep(0.5)
    lab("cut", "h2", "rail2")
    cut = time.monotonic()
    try:
        out, err = job.communicate(timeout=30)
        said = [line.partition(" ") for line in out.splitlines()]
        waited = [float(when) - cut for when, _, _ in said]
        print(f"known after {min(waited):.2f} to {max(waited):.2f} s")
        first = said[0][2]
        assert "acknowledges nothing over rail2 10.77.2." in first
        assert "lost its path: host h" in first
        assert err.count("Rails as they were chosen:") == 1
        ways = [("h1", "h2", 1, 2), ("h2", "h1", 2, 1)]
        for rail in (1, 2):
            known = [f"rail{rail} 10.77.{rail}.{a} - 10.77.{rail}.{b}" for *_, a, b in ways]
            assert any(way in err for way in known)
        assert min(waited) < 4  # under 2 s on a machine that does nothing else
    finally:
        lab("heal", "h2", "rail2")


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_a_rank_that_computes_is_no_dead_rail(lab):
    """Its kernel answers, whether it has room or not."""
    code, out, err = lab.run("--host", "h1,h2", *RAILS, sys.executable, "-c", BUSY_PEER)
    assert (code, out) == (0, "all\n" * 2), err


VICTIMS = ["ompy-agent", "ompy-guard", "sshd", "ssh"] if THOROUGH else ["ompy-agent"]


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_dead_agent_or_shell_ends_the_job_everywhere(lab, tmp_path, victim):
    job = lab.ompy_run("--host", "h2:2,h4", sys.executable, "-c", WAITING, tmp_path)
    await_up(job, 3)
    pid = named(lab, "h1" if victim == "ssh" else "h4", victim)[0]
    died = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    _, err = job.communicate(timeout=30)
    assert job.returncode == 1
    assert "looks after the ranks of a host is gone" in err
    told = [float(path.read_text()) - died for path in tmp_path.iterdir() if not path.suffix]
    print(f"{victim}: {len(told)} ranks were told after {max(told):.2f} s")
    assert told
    assert max(told) < 4  # as above
    lab.assert_empty()
