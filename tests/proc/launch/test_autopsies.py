"""What a job says of itself when it is asked: at Ctrl-C, a timeout and SIGUSR1, on real ranks."""

import json
import os
import re
import signal
import sys
import time
from contextlib import suppress
from xml.etree import ElementTree as ET

import pytest

from tests.support.effort import THOROUGH, effort

from .test_tree import FIVE, tree

__all__ = ["tree"]  # a fixture
pytestmark = pytest.mark.proc

STUCK = """
from mpi4py import MPI
import time
comm = MPI.COMM_WORLD
def main():
    other = comm.rank ^ 1
    if comm.rank < 2:
        comm.Send(b"12345", other, tag=3)
        print("up", flush=True)
        comm.Recv(bytearray(9), other, tag=4)
    print("up", flush=True)
    if comm.rank == 2: comm.Barrier()
    request = comm.Irecv(bytearray(9), 0, tag=9)
    time.sleep(1000)
main()
"""
STANDS = "--no-deadlock-detection"
SAYS = (
    "ranks 0-2 cannot go on, it seems (asked once: no proof); each waits for the next: 0 -> 1 -> 0",
    "  rank 0 is at <string>:10 in main",
    "    waiting for a message from rank 1 with tag 4 in MPI_COMM_WORLD",
    "    near: 5 bytes from rank 1 are here, but with tag 3",
    "  rank 2 is at <string>:12 in main",
    "    waiting for Barrier, collective call 1 of MPI_COMM_WORLD, where ranks 0, 1, 3 are missing",
    "  rank 3 is at <string>:14 in main",
    "    not complete: receive from rank 0 with tag 9 in MPI_COMM_WORLD",
)
LINES_MOST = 160  # of one autopsy, whatever happens


def asked_until(job, wanted):
    """Send SIGUSR1 until an autopsy says all of it; returns the last one's lines."""
    deadline = time.monotonic() + 90
    lines = []
    while time.monotonic() < deadline:
        job.signal(signal.SIGUSR1)
        lines = []
        while not lines or wanted[-1] not in lines[-1]:
            lines.append(job.process.stderr.readline().decode().rstrip("\n"))
            assert lines[-1], lines
            if "rank 3 is at" in lines[-1] and any("proves nothing" in line for line in lines):
                break
        if all(f"ompy-run: {one}" in lines for one in wanted):
            return lines
        time.sleep(0.2)
    raise AssertionError(lines)


def start(launch, *options):
    job = launch.start("-n", 4, STANDS, *options, sys.executable, "-c", STUCK)
    assert [job.line() for _ in range(4)] == ["up"] * 4
    return job


def test_a_timeout_ends_with_the_autopsy(launch, tmp_path):
    path = tmp_path / "autopsy.json"
    result = launch.python(4, STUCK, STANDS, "--timeout", 4, "--autopsy", path)
    assert result.code == 110
    for line in SAYS:
        assert f"ompy-run: {line}\n" in result.err
    assert "ompy: rank" not in result.err, "there is one report"
    told = json.loads(path.read_text())
    assert (told["class"], told["proven"], told["why"]) == ("standing", False, "timeout")
    assert (told["ranks"], told["cycle"], told["silent"]) == ([0, 1, 2], [0, 1], [])
    assert [each["line"] for each in told["waits"]] == [10, 10, 12, 14]
    assert told["waits"][1]["near"] == ["5 bytes from rank 0 are here, but with tag 3"]
    assert any("< MATCH" in event for event in told["waits"][0]["recent"])


def test_ctrl_c_on_a_job_that_stands_still_ends_with_the_autopsy(launch, tmp_path):
    path = tmp_path / "autopsy.svg"
    job = start(launch, "--autopsy", path)
    time.sleep(3)  # they sleep for long by then
    job.signal(signal.SIGINT)
    result = job.end()
    assert result.code == 130
    for line in SAYS:
        assert f"ompy-run: {line}\n" in result.err
    texts = [each.text or "" for each in ET.parse(path).iter() if each.tag.endswith("text")]
    assert any("rank 3: <string>:14 in main" in text for text in texts)


def test_sigusr1_gives_the_autopsy_and_the_job_goes_on(launch, tmp_path):
    path = tmp_path / "autopsy.json"
    job = start(launch, "--autopsy", path)
    for _ in range(2):
        asked_until(job, SAYS)
    time.sleep(3)  # what was asked for last is written, too
    assert json.loads(path.read_text())["why"] == "signal"
    assert job.process.poll() is None
    job.signal(signal.SIGTERM)
    result = job.end()
    assert result.code == 128 + signal.SIGTERM
    assert "ompy: rank" not in result.err


def test_a_timeout_of_ranks_that_are_not_stuck_in_messages(launch):
    """One computes, and says its line; one is no MPI process, and does not die of being asked."""
    code = "from mpi4py import MPI\nwhile True: pass\n"
    argv = [sys.executable, "-c", code, ":", "-n", 1, "sleep", "30"]
    result = launch("--timeout", 3, "-n", 1, *argv)
    assert result.code == 110
    assert "rank 0 is at <string>:2 in <module>" in result.err
    assert "signal" not in result.err


def test_an_autopsy_of_a_tree_of_hosts(tree):
    code = "from ompy import MPI\nc = MPI.COMM_WORLD\nc.recv(source=(c.rank + 1) % 5, tag=c.rank)\n"
    result = tree(2, code, STANDS, "--timeout", 6)
    assert len(FIVE.split(",")) == 5
    assert result.code == 110
    assert "ranks 0-4 cannot go on, it seems" in result.err
    assert "each waits for the next: 0 -> 1 -> 2 -> 3 -> 4 -> 0" in result.err


def bounded(text):
    """The autopsy's lines, which are few and short."""
    lines = [line for line in text.splitlines() if line.startswith("ompy-run:")]
    assert 0 < len(lines) <= LINES_MOST, len(lines)
    assert max(map(len, lines)) < 2000
    return lines


def test_many_ranks_that_never_go_on(launch):
    """Each at a line of its own; 64 of them by night."""
    size = 64 if THOROUGH else 18
    calls = "".join(
        f"if c.rank == {rank}: c.recv(source=(c.rank + 1) % c.size)\n" for rank in range(size)
    )
    code = "from mpi4py import MPI\nc = MPI.COMM_WORLD\nc.Barrier()\n" + calls
    result = launch.python(size, code, "--timeout", 120)
    assert result.code == 4, result.err
    lines = bounded(result.err)
    assert any(f"ranks 0-{size - 1} can never go on" in line for line in lines)
    assert any(f"at {size - 16} more places" in line for line in lines)


def test_ranks_killed_while_they_report(launch):
    """The job ends by that, soon, and what is said is whole; at moments of all kinds."""
    killed = 0
    for turn in range(effort(4)):
        code = f"import os\nprint(os.getpid(), flush=True)\n{STUCK}"
        job = launch.start("-n", 4, STANDS, sys.executable, "-c", code)
        said = [job.line() for _ in range(8)]
        pids = [int(line) for line in said if line.isdigit()]
        time.sleep(1)
        began = time.monotonic()
        job.signal(signal.SIGUSR1 if turn % 2 else signal.SIGINT)
        time.sleep(0.004 * turn)
        with suppress(ProcessLookupError):
            os.kill(pids[turn % 4], signal.SIGKILL)
            killed += 1
        result = job.end()
        assert time.monotonic() - began < 60
        assert result.code in {130, 128 + signal.SIGKILL}, result
        bounded(result.err + "ompy-run: \n")
        assert "Traceback" not in result.err
    assert killed >= effort(4) // 2


SOUP = """
import threading, random, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
chance = random.Random(SEED + comm.rank)
def wait(tag):
    what = chance.randrange(4)
    if what == 0: comm.recv(source=chance.randrange(comm.size), tag=tag)
    elif what == 1: comm.ssend(1, dest=chance.randrange(comm.size), tag=tag + 100)
    elif what == 2: MPI.Request.Waitany([comm.Irecv(bytearray(4), tag=tag) for _ in range(9)])
    else: time.sleep(1000)
for tag in range(24):
    threading.Thread(target=wait, args=(tag,), daemon=True).start()
print("up", flush=True)
comm.Barrier() if comm.rank else comm.probe(tag=500)
"""


@pytest.mark.parametrize("seed", range(effort(2)))
def test_thread_soup(launch, seed):
    """Whether it never goes on or may, it is told in few lines, and soon."""
    job = launch.start_python(3, SOUP.replace("SEED", str(seed)), STANDS)
    assert [job.line() for _ in range(3)] == ["up"] * 3
    time.sleep(2)
    began = time.monotonic()
    job.signal(signal.SIGINT)
    result = job.end()
    assert time.monotonic() - began < 60
    assert result.code == 130
    text = "\n".join(bounded(result.err))
    told = {int(one) for one in re.findall(r"\branks? (\d+)", text)}
    spans = [range(int(a), int(b) + 1) for a, b in re.findall(r"(\d+)-(\d+)", text)]
    assert {0, 1, 2} <= told.union(*spans), text
