"""usnic over real rails: a cable that is pulled in the middle of a transfer."""

import re
import sys
import time

import pytest
from ompy.frameworks.paths.path_watch import PATIENCE_MS

from tests.support.effort import THOROUGH

pytestmark = [pytest.mark.proc, pytest.mark.netns]

# five tries, the last of which waits for 1.6 s; and what the agents need to find it out, in ms
LIMITED = ("--mca", "btl_usnic_retries_max", "4", "--mca", "btl_base_probe_timeout_ms", "0")
TRIES = (LIMITED, 0.1 + 0.2 + 0.4 + 0.8 + 1.6, "was tried 5 times without an answer")
ASKED = "the agents of both hosts did not reach each other"
PROBES = ((), (100 + PATIENCE_MS) / 1000, ASKED)
STAY = 0.1  # s; what a packet that was under way may have waited when the cable is cut
SLACK = 15  # s; arbitrary: the job has to end, on a machine that does other things
PROGRAM = """
import time
from ompy import MPI
c = MPI.COMM_WORLD
b = bytearray(1_000_000)
for turn in range(100_000):
    try:
        c.Send(b, 1) if c.rank == 0 else c.Recv(b, 0)
    except MPI.Exception:
        print("lost", c.rank, time.monotonic(), flush=True)
        raise
    if turn == 3:
        print("going", flush=True)
"""


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
@pytest.mark.parametrize("loss", [0, 5])
@pytest.mark.parametrize(("settings", "configured", "reason"), [TRIES, PROBES], ids=["tries", "-"])
def test_a_cut_cable_is_reported_in_the_configured_time(lab, loss, settings, configured, reason):
    """By whoever has sent something; a loss of some packets before is no reason to give up."""
    lab("loss", "h2", "rail1", loss)
    rails = ("--mca", "btl", "self,usnic", "--mca", "btl_usnic_if_include", "rail1")
    command = ("--host", "h1,h2", *rails, *settings, sys.executable, "-u", "-c", PROGRAM)
    process = lab.ompy_run(*command)
    try:
        assert process.stdout.readline() == "going\n"
        cut = time.monotonic()
        lab("cut", "h2", "rail1")
        out, err = process.communicate(timeout=configured + SLACK)
    finally:
        lab("heal", "h2", "rail1")
        lab("loss", "h2", "rail1", 0)
    assert process.returncode == 1
    assert "MPI_ERR_PROC_FAILED" in err
    assert reason in err
    lost = [float(line.split()[2]) for line in out.splitlines() if line.startswith("lost ")]
    assert lost, out
    print(f"lost after {lost[0] - cut:.2f} s where {configured} s are configured")
    assert lost[0] - cut > configured - 2 * STAY, "too early"
    assert lost[0] - cut < configured + SLACK / 2


BUSY = """
import sys, time
from ompy import MPI
c = MPI.COMM_WORLD
b = bytearray(2_000_000)
if c.rank == 0:
    c.Send(b, 1)
else:
    r = c.Irecv(b, 0)
    until = time.monotonic() + 0.02
    while time.monotonic() < until:
        assert not r.Test()
    time.sleep(float(sys.argv[1]))
    r.Wait()
    print("got all")
"""


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
@pytest.mark.parametrize("loss", [0, 30])
def test_a_rank_that_computes_is_no_dead_rail(lab, loss):
    """Five seconds in mid-transfer; the agents reach each other, even where much is lost."""
    lab("loss", "h2", "rail1", loss)
    rails = ("--mca", "btl", "self,usnic", "--mca", "btl_usnic_if_include", "rail1")
    more = ("--mca", "btl_usnic_stats", "100", sys.executable, "-u", "-c", BUSY, "5")
    try:
        code, out, err = lab.run("--host", "h1,h2", *rails, *more)
    finally:
        lab("loss", "h2", "rail1", 0)
    assert code == 0, err
    assert "got all" in out
    doubts = [int(found) for found in re.findall(r"(\d+) doubts", err)]
    assert sum(doubts) > 0, err


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_our_own_faults_on_top_of_the_kernels_losses(lab):
    """nftables loses packets, our fault layer reorders, damages and doubles what is left."""
    script = ";".join(
        f"{what}:probability=0.05,seed={seed}"
        for seed, what in enumerate(("reorder", "corrupt", "corrupt:mode=byte", "duplicate"))
    ).replace("mode=byte:probability", "mode=byte,probability")
    lab("loss", "h1", "rail1", 3)
    lab("loss", "h2", "rail2", 3)
    rails = ("--mca", "btl", "self,usnic", "--mca", "btl_usnic_if_include", "rail1,rail2")
    more = ("--fault", script, "--fault-strict", "--mca", "btl_usnic_stats", "100")
    try:
        command = ("--host", "h1,h2", *rails, *more, sys.executable, "-u", "-c", CHECKED)
        code, out, err = lab.run(*command)
    finally:
        lab("loss", "h1", "rail1", 0)
        lab("loss", "h2", "rail2", 0)
    assert code == 0, err
    assert out.split() == ["right", "right"]
    delivered = [int(found) for found in re.findall(r"^ompy-run: +(\d+)  ", err, re.MULTILINE)]
    assert len(delivered) == 4
    assert min(delivered) > 5
    assert sum(int(found) for found in re.findall(r"(\d+) resends", err)) > sum(delivered) / 4


CHECKED = """
from ompy import MPI
c = MPI.COMM_WORLD
other = 1 - c.rank
for turn, size in enumerate((0, 1, 700, 1400, 1500, 20_000, 300_000) * 6):
    mine = bytes((turn + c.rank + i) % 251 for i in range(size))
    theirs = bytes((turn + other + i) % 251 for i in range(size))
    room = bytearray(size)
    c.Sendrecv(mine, other, turn, room, other, turn)
    assert room == theirs, turn
print("right")
"""
