"""Performance variables of a real job: read by the program, and shown at its end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.proc

PROGRAM = """
import time
from mpi4py import MPI
from ompy import pvars
comm = MPI.COMM_WORLD
before = pvars.read()
if comm.rank == 0:
    for _ in range(5):
        comm.Send(bytes(100), 1)
    comm.Ssend(bytes(2_000_000), 1)
else:
    while pvars.read()["pml_ob1_unexpected_msgq_length"] < 5:
        comm.Iprobe(0, 99)
    until = time.monotonic() + 0.05  # the queue is looked at every millisecond
    while time.monotonic() < until:
        comm.Iprobe(0, 99)
    for _ in range(5):
        comm.Recv(bytearray(100), 0)
    comm.Recv(bytearray(2_000_000), 0)
after = pvars.read()
assert after.keys() == pvars.describe().keys()
grown = {name: after[name] - before[name] for name in after}
assert grown["pml_ob1_messages_sent"] == (6, 0)[comm.rank], grown
assert grown["pml_ob1_messages_received"] == (0, 6)[comm.rank], grown
assert grown["pml_ob1_rendezvous_sent"] == (1, 0)[comm.rank], grown
assert grown["pml_ob1_rendezvous_received"] == (0, 1)[comm.rank], grown
assert after["pml_ob1_unexpected_msgq_length"] == 0
if TCP:
    sent = ("btl_tcp_bytes_sent", "btl_tcp_bytes_received")[comm.rank]
    until = time.monotonic() + 20  # what the kernel has taken may not be on its way
    while grown[sent] <= 2_000_000 and time.monotonic() < until:
        time.sleep(0.001)
        grown[sent] = pvars.read()[sent] - before[sent]
    assert grown[sent] > 2_000_000, grown
else:
    assert grown["btl_sm_fragments_sent" if comm.rank == 0 else "btl_sm_fragments_received"] >= 6
"""

# neither rank ends before both have made their last call: a connection that the other end has
# closed would be read as closed, and counted no more
TOGETHER = """
from pathlib import Path
Path({folder!r}, str(comm.rank)).touch()
while len(list(Path({folder!r}).iterdir())) < comm.size:
    time.sleep(0.001)
"""


def job(tcp: bool, *options: str, end: str = "") -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "ompy.cli.run", "-n", "2", *options]
    words += ["--mca", "btl", "self,tcp" if tcp else "self,sm"]
    words += [sys.executable, "-c", f"TCP = {tcp}\n{PROGRAM}{end}"]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("tcp", [False, True], ids=["sm", "tcp"])
def test_what_a_program_reads(tcp: bool) -> None:
    done = job(tcp)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_the_table_at_the_end(tmp_path: Path) -> None:
    end = TOGETHER.format(folder=str(tmp_path))
    done = job(True, "--pvars", "pml_ob1_messages_*, btl_tcp_connections", end=end)
    assert done.returncode == 0, done.stderr
    rows = [line.split()[1:] for line in done.stderr.splitlines()]
    assert rows[0] == ["performance", "variables", "of", "2", "rank(s):"]
    assert rows[1] == ["variable", "sum", "least", "most"]
    assert ["btl_tcp_connections", "2", "1", "1"] in rows
    assert ["pml_ob1_messages_sent", "6", "0", "6"] in rows
    assert len(rows) == 6


def test_as_an_object() -> None:
    done = job(False, "--pvars", "all", "--log-format", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stderr)
    assert told["event"] == "performance variables"
    assert told["values"]["1"]["pml_ob1_messages_received"] == 6
    assert told["values"]["1"]["pml_ob1_unexpected_msgq_highest"] >= 5
    assert told["values"]["0"].keys() == told["values"]["1"].keys()


def test_a_name_that_is_none() -> None:
    done = job(False, "--pvars", "nonsense")
    assert done.returncode == 0
    assert "no performance variable of this name" in done.stderr
