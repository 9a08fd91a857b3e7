"""Rails that are cut under a PML that fails over: cables pulled, black holes, rails healed."""

import json
import os
import signal
import sys
import time

import pytest

from tests.proc.launch.conftest import state
from tests.support.effort import THOROUGH, effort

from .conftest import PATIENCE, Lines
from .test_faults import named

pytest.importorskip("ompy_components.pml.bfo", reason="there is no PML that fails over")
pytestmark = [pytest.mark.proc, pytest.mark.netns]


def rails_of(btl):
    """Both rails, by one BTL."""
    rails = ("--mca", f"btl_{btl}_if_include", "rail1,rail2")
    return ("--mca", "pml", "bfo", "--mca", "btl", f"self,{btl}", *rails)


RAILS = rails_of("tcp")
# every rank sums until there is a file, and says how long the longest step took since it said so
PROGRAM = """
import os, sys, time
import numpy as np
from mpi4py import MPI
w = MPI.COMM_WORLD
a = np.arange(int(sys.argv[1]), dtype="f8")
b = np.empty_like(a)
step, longest, said = 0, 0.0, 0.0
going = np.ones(1)
while going[0]:
    step += 1
    began = time.monotonic()
    w.Allreduce(a * step, b)
    longest = max(longest, time.monotonic() - began)
    assert (b == a * step * w.size).all(), step
    going[0] = not os.path.exists(sys.argv[2])
    w.Bcast(going, 0)
    if w.rank == 0 and time.monotonic() - said > 0.2:
        said = time.monotonic()
        print("step", step, longest, flush=True)
        longest = 0.0
if w.rank == 0:
    print("done", step, flush=True)
"""


class Job:
    """Two ranks that sum all the time, or run another program that is told as much, until `end`."""

    def __init__(self, lab, folder, *more, rails=RAILS, size=100_000, program=PROGRAM):
        self.report, self._sign = folder / "rails.json", folder / "enough"
        shown = ("--mca", "bml_base_display_rails", "live")
        words = ("--host", "h1,h2", *rails, *shown, *more, "--report-rails", self.report)
        self.process = lab.ompy_run(*words, sys.executable, "-u", "-c", program, size, self._sign)
        self._out, self._err = Lines(self.process.stdout), Lines(self.process.stderr)
        self._out.wait_for(1, "step")

    def wait_for_both(self, *words, times=(1, 1)):
        """Until each rank has said this of a rail so often."""
        for rank, count in enumerate(times):
            self._err.wait_for(count, f"rank {rank} to", *words)

    def once_more(self, *words):
        """How often each rank will have said this when it has said it again."""
        return [self._err.count(f"rank {rank} to", *words) + 1 for rank in (0, 1)]

    def has_said(self, *words):
        """Whether a rank has said this of a rail by now."""
        return self._err.count(*words) > 0

    def end(self):
        """The steps it said, each with its longest time in s; and the events of rails."""
        self._sign.touch()
        code = self.process.wait(timeout=PATIENCE)
        out, err = self._out.all(), self._err.all()
        assert code == 0, err
        assert out[-1].startswith("done"), out
        longest = [float(line.split()[2]) for line in out if line.startswith("step")]
        return longest, json.loads(self.report.read_text())["rails"]


def pulled(lab, rail="rail1"):
    lab("cut", "h2", rail)


def swallowed(lab, rail="rail1"):
    for host in ("h1", "h2"):
        lab("loss", host, rail, 100)


def restored(lab, rail="rail1"):
    lab("heal", "h2", rail)
    for host in ("h1", "h2"):
        lab("loss", host, rail, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(effort(1)))
@pytest.mark.parametrize("fault", [pulled, swallowed])
def test_ten_times_a_rail_goes_in_the_middle_of_a_loop_and_comes_back(lab, tmp_path, fault, number):
    """The program goes on, both ends say so, and when it has returned both use it again.

    Five times each, now one rail and now the other; a flapping rail is not left alone here.
    """
    job = Job(lab, tmp_path, "--mca", "btl_base_heal_hold_ms", "0")
    rails = ("rail1", "rail2", "rail1", "rail2", "rail1")
    try:
        for rail in rails:
            broken, healed = job.once_more(rail, "not healed"), job.once_more(rail, ": healed at")
            fault(lab, rail)
            job.wait_for_both(rail, "not healed", times=broken)
            restored(lab, rail)
            job.wait_for_both(rail, ": healed at", times=healed)
        longest, events = job.end()
    finally:
        for rail in set(rails):
            restored(lab, rail)
    for rank in (0, 1):
        for rail in rails:
            own = [event for event in events if event["rank"] == rank and rail in event["rail"]]
            assert sum(bool(event["healed_ns"]) for event in own) >= rails.count(rail), own
    assert sum(event["messages"] for event in events), "nothing was under way at any cut"
    print(f"longest step {max(longest) * 1000:.0f} ms; {[event['cause'] for event in events]}")


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
@pytest.mark.parametrize("fault", [pulled, swallowed])
@pytest.mark.parametrize("btl", ["usnic", "openib"])
def test_rails_of_emulated_nics(lab, tmp_path, btl, fault):
    """The same by transports of our own; a tenth of the bytes, as Python carries each packet."""
    breaks_and_heals(lab, Job(lab, tmp_path, rails=rails_of(btl), size=10_000), fault)


THREADS = """
import os, sys, threading, traceback
import numpy as np
from mpi4py import MPI
w = MPI.COMM_WORLD
other, size = 1 - w.rank, int(sys.argv[1])
here, there = np.zeros(size), np.empty(size)

def messages(comm, turn):
    back = comm.sendrecv((turn, bytes(5000)), other, source=other)
    assert back == (turn, bytes(5000)), turn
    comm.Sendrecv(np.full(size, turn), other, recvbuf=there, source=other)
    assert (there == turn).all(), turn

def sums(comm, turn):
    a = np.full(size, turn)
    b = np.empty_like(a)
    comm.Iallreduce(a, b).Wait()
    assert (b == 2 * turn).all(), turn

def windows(comm, turn):
    window.Fence()
    window.Put(np.full(size, 10 * turn + w.rank), other)
    window.Fence()
    assert (here == 10 * turn + other).all(), turn

def run(step, comm):
    turn = 0
    try:
        while comm.allreduce(not os.path.exists(sys.argv[2])) == 2:
            turn += 1
            step(comm, float(turn))
    except BaseException:
        traceback.print_exc()
        w.Abort(3)

comms = [w.Dup() for _ in range(3)]
window = MPI.Win.Create(here, 8, comm=comms[2])
parts = zip((messages, sums, windows), comms)
threads = [threading.Thread(target=run, args=part) for part in parts]
for thread in threads:
    thread.start()
if w.rank == 0:
    print("step 0 0", flush=True)
for thread in threads:
    thread.join()
window.Free()
if w.rank == 0:
    print("done", flush=True)
"""


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
@pytest.mark.parametrize("fault", [pulled, swallowed])
@pytest.mark.parametrize("btl", ["tcp", "usnic", "openib"])
def test_a_rail_goes_under_several_threads(lab, tmp_path, btl, fault):
    """Each does something else: messages, a nonblocking collective, puts into a window."""
    job = Job(lab, tmp_path, rails=rails_of(btl), size=10_000, program=THREADS)
    breaks_and_heals(lab, job, fault)


def breaks_and_heals(lab, job, fault):
    """A rail is cut until both ends have said so, and whole again until they say that."""
    try:
        fault(lab)
        job.wait_for_both("rail1", "not healed")
        restored(lab)
        job.wait_for_both("rail1", ": healed at")
        longest, events = job.end()
    finally:
        restored(lab)
    assert all("rail1" in event["rail"] for event in events), events
    first = [next(event for event in events if event["rank"] == rank) for rank in (0, 1)]
    assert all(event["healed_ns"] > event["noticed_ns"] for event in first), events
    print(f"longest step {max(longest) * 1000:.0f} ms; {[event['cause'] for event in first]}")


def test_a_link_that_is_up_and_carries_nothing_is_not_taken_back(lab, tmp_path):
    """Mooncake#2960: both kernels say that it is up; it heals when packets get through."""
    job = Job(lab, tmp_path)
    try:
        pulled(lab)
        job.wait_for_both("rail1", "not healed")
        swallowed(lab)
        lab("heal", "h2", "rail1")
        time.sleep(2)  # as long as a healing takes several times over
        assert not job.has_said(": healed at"), "healed while nothing got through"
        restored(lab)
        job.wait_for_both("rail1", ": healed at")
        job.end()
    finally:
        restored(lab)


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
    os.kill(os.getpid(), signal.SIGSTOP)
    for number in range(200):
        w.Recv(here, 0)
        assert int.from_bytes(here) == number, (number, int.from_bytes(here))
    w.Send(b"all", 0)
    time.sleep(0.5)
    assert not w.Iprobe(), "something arrived twice"
else:
    while not os.path.exists(sys.argv[1]): time.sleep(0.01)
    under_way = [w.Isend(number.to_bytes(8), 1) for number in range(200)]
    print("sent", flush=True)
    MPI.Request.Waitall(under_way)
    w.Recv(bytearray(3), 1)
w.Barrier()
"""


def test_bytes_in_the_kernel_of_a_stopped_receiver_are_delivered_once(lab, tmp_path):
    """SIGSTOP, then messages on both rails, then one rail is cut: each message comes once."""
    report, sign = tmp_path / "rails.json", tmp_path / "send"
    words = ("--host", "h1,h2", *RAILS, "--report-rails", report)
    job = lab.ompy_run(*words, sys.executable, "-u", "-c", STOPPED, sign)
    try:
        stopped = int(job.stdout.readline())
        until = time.monotonic() + PATIENCE
        while state(stopped) != "T":
            assert time.monotonic() < until
            time.sleep(0.01)
        sign.touch()
        assert job.stdout.readline() == "sent\n"
        lab("cut", "h1", "rail1")
        time.sleep(0.5)  # the sender has been told by its link, and has sent again
        os.kill(stopped, signal.SIGCONT)
        _, err = job.communicate(timeout=PATIENCE)
    finally:
        lab("heal", "h1", "rail1")
    assert job.returncode == 0, err
    events = json.loads(report.read_text())["rails"]
    assert any(event["rank"] == 0 and event["messages"] for event in events), events


ALONE = """
import sys, time
from mpi4py import MPI
w = MPI.COMM_WORLD
others = [rank for rank in range(w.size) if rank != w.rank]
for _ in range(4):  # all rails are connected
    for peer in others:
        w.Sendrecv(bytearray(300_000), peer, recvbuf=bytearray(300_000), source=peer)
print("up", flush=True)
try:
    if sys.argv[1] == "all receive":
        w.Recv(bytearray(8), others[-1])
    while True:  # with both at once: who waits for one that was told hears of the lost one, too
        open_ends = [w.Irecv(bytearray(300_000), peer) for peer in others]
        open_ends += [w.Isend(bytearray(300_000), peer) for peer in others]
        while MPI.Request.Waitany(open_ends) != MPI.UNDEFINED:
            pass
except MPI.Exception as problem:
    print("told", w.rank, problem.Get_error_class() == MPI.ERR_PROC_FAILED, flush=True)
    time.sleep(1000)  # nobody hears of it by our end
"""


WAYS = [(fault, traffic) for fault in ("loss", "cut") for traffic in ("all receive", "all talk")]


@pytest.mark.parametrize(("fault", "traffic"), WAYS if THOROUGH else WAYS[:1])
def test_all_rails_gone_is_an_error_on_every_rank(lab, fault, traffic):
    """Of three hosts one loses both cables, silently or not: each rank that needs it is told."""
    job = lab.ompy_run("--host", "h1,h2,h3", *RAILS, sys.executable, "-u", "-c", ALONE, traffic)
    out, err = Lines(job.stdout), Lines(job.stderr)
    try:
        out.wait_for(3, "up")
        for rail in ("rail1", "rail2"):
            lab(fault, "h3", rail, *[100] * (fault == "loss"))
        for rank in range(3):
            out.wait_for(1, f"told {rank} True")
        job.terminate()
        job.wait(timeout=PATIENCE)
    except AssertionError as problem:
        problem.add_note("\n".join(err.lines))
        raise
    finally:
        for rail in ("rail1", "rail2"):
            lab("heal", "h3", rail)
            lab("loss", "h3", rail, 0)


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_agents_that_were_stopped_take_no_rail_for_dead(lab, tmp_path):
    """Both for longer than a silent rail has: they count questions, not time."""
    job = Job(lab, tmp_path)
    agents = [pid for host in ("h1", "h2") for pid in named(lab, host, "ompy-agent")]
    assert len(agents) == 2
    for pid in agents:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(1)  # the launcher takes an agent for lost after 1.5 s
    for pid in agents:
        os.kill(pid, signal.SIGCONT)
    time.sleep(0.5)
    _, events = job.end()
    assert not events
