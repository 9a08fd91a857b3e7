"""tcp rails that are cut under a PML that fails over: cables pulled, black holes, rails healed."""

import json
import os
import signal
import sys
import time

import pytest

from tests.support.effort import effort

pytest.importorskip("ompy_components.pml.bfo", reason="there is no PML that fails over")
pytestmark = [pytest.mark.proc, pytest.mark.netns]

RAILS = (
    "--mca",
    "pml",
    "bfo",
    "--mca",
    "btl",
    "self,tcp",
    "--mca",
    "btl_tcp_if_include",
    "rail1,rail2",
)
# every rank sums, and says how long the longest step took since the last word about it
PROGRAM = """
import sys, time
import numpy as np
from mpi4py import MPI
w = MPI.COMM_WORLD
a = np.arange(int(sys.argv[1]), dtype="f8")
b = np.empty_like(a)
end = time.monotonic() + float(sys.argv[2])
step, longest, said = 0, 0.0, 0.0
going = np.ones(1)
while going[0]:
    step += 1
    began = time.monotonic()
    w.Allreduce(a * step, b)
    longest = max(longest, time.monotonic() - began)
    assert (b == a * step * w.size).all(), step
    going[0] = time.monotonic() < end
    w.Bcast(going, 0)
    if w.rank == 0 and time.monotonic() - said > 0.2:
        said = time.monotonic()
        print("step", step, longest, flush=True)
        longest = 0.0
if w.rank == 0:
    print("done", step, flush=True)
"""


class Job:
    """Two ranks that sum all the time."""

    def __init__(self, lab, folder, *more, size=100_000, seconds=6.0):
        self.report = folder / "rails.json"
        words = ("--host", "h1,h2", *RAILS, *more, "--report-rails", self.report)
        program = (sys.executable, "-u", "-c", PROGRAM, size, seconds)
        self.process = lab.ompy_run(*words, *program)
        line = self.process.stdout.readline()
        assert line.startswith("step"), line + self.process.stderr.read()

    def end(self):
        """The steps it said, each with its longest time in s; and the events of rails."""
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        assert out.splitlines()[-1].startswith("done"), out
        longest = [float(line.split()[2]) for line in out.splitlines() if line.startswith("step")]
        return longest, json.loads(self.report.read_text())["rails"]


def pulled(lab):
    lab("cut", "h2", "rail1")


def swallowed(lab):
    for host in ("h1", "h2"):
        lab("loss", host, "rail1", 100)


def restored(lab):
    lab("heal", "h2", "rail1")
    for host in ("h1", "h2"):
        lab("loss", host, "rail1", 0)


@pytest.mark.parametrize("number", range(effort(1)))
@pytest.mark.parametrize("fault", [pulled, swallowed])
def test_a_rail_goes_in_the_middle_of_a_loop_and_comes_back(lab, tmp_path, fault, number):
    """The program goes on, both ends say so, and within a second of its return the rail is used."""
    job = Job(lab, tmp_path)
    try:
        time.sleep(0.5)
        fault(lab)
        time.sleep(1.5)
        restored(lab)
        healed_by = time.monotonic()
        longest, events = job.end()
    finally:
        restored(lab)
    del healed_by
    ends = {event["rank"] for event in events}
    assert ends == {0, 1}, events
    assert all("rail1" in event["rail"] for event in events), events
    first = [next(event for event in events if event["rank"] == rank) for rank in (0, 1)]
    assert all(event["healed_ns"] > event["noticed_ns"] for event in first), events
    print(f"longest step {max(longest) * 1000:.0f} ms; {[event['cause'] for event in first]}")
    assert abs(first[0]["noticed_ns"] - first[1]["noticed_ns"]) < 2_000_000_000


def test_a_busy_rank_breaks_no_rail(lab, tmp_path):
    """Five seconds of sleep in mid-transfer: no event, and the message arrives."""
    program = """
import sys, time
from mpi4py import MPI
w = MPI.COMM_WORLD
b = bytearray(20_000_000)
if w.rank == 0:
    w.Send(b"x" * len(b), 1)
else:
    r = w.Irecv(b, 0)
    until = time.monotonic() + 0.01
    while time.monotonic() < until:
        r.Test()
    time.sleep(5)
    r.Wait()
    assert b == b"x" * len(b)
w.Barrier()
"""
    report = tmp_path / "rails.json"
    words = ("--host", "h1,h2", *RAILS, "--report-rails", report)
    code, _, err = lab.run(*words, sys.executable, "-c", program)
    assert code == 0, err
    assert json.loads(report.read_text()) == {"rails": []}
    assert "rails broke" not in err


STOPPED = """
import os, signal, sys, time
from mpi4py import MPI
w = MPI.COMM_WORLD
other = 1 - w.rank
here = bytearray(8)
for _ in range(4):  # both rails are connected
    w.Sendrecv(bytearray(1_000_000), other, recvbuf=bytearray(1_000_000), source=other)
if w.rank == 1:
    print(os.getpid(), flush=True)
    time.sleep(0.3)  # stopped in here
    for number in range(200):
        w.Recv(here, 0)
        assert int.from_bytes(here) == number, (number, int.from_bytes(here))
    w.Send(b"all", 0)
    time.sleep(0.5)
    assert not w.Iprobe(), "something arrived twice"
else:
    time.sleep(0.2)
    under_way = [w.Isend(number.to_bytes(8), 1) for number in range(200)]
    print("sent", flush=True)
    MPI.Request.Waitall(under_way)
    w.Recv(bytearray(3), 1)
w.Barrier()
"""


def test_bytes_in_the_kernel_of_a_stopped_receiver_are_delivered_once(lab, tmp_path):
    """SIGSTOP, then messages on both rails, then one rail is cut: each message comes once."""
    report = tmp_path / "rails.json"
    words = ("--host", "h1,h2", *RAILS, "--report-rails", report)
    job = lab.ompy_run(*words, sys.executable, "-u", "-c", STOPPED)
    try:
        stopped = int(job.stdout.readline())
        os.kill(stopped, signal.SIGSTOP)
        assert job.stdout.readline() == "sent\n"
        lab("cut", "h1", "rail1")
        time.sleep(0.5)  # the sender has been told by its link, and has sent again
        os.kill(stopped, signal.SIGCONT)
        _, err = job.communicate(timeout=60)
    finally:
        lab("heal", "h1", "rail1")
    assert job.returncode == 0, err
    events = json.loads(report.read_text())["rails"]
    assert any(event["rank"] == 0 and event["messages"] for event in events), events
