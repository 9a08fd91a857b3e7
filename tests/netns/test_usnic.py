"""usnic over real rails: a cable that is pulled in the middle of a transfer."""

import sys
import time

import pytest

from tests.support.effort import THOROUGH

pytestmark = [pytest.mark.proc, pytest.mark.netns]

# five tries, the last of which waits for 1.6 s
LIMITED = ("--mca", "btl_usnic_retries_max", "4")
CONFIGURED = 0.1 + 0.2 + 0.4 + 0.8 + 1.6
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
def test_a_cut_cable_is_reported_in_the_configured_time(lab, loss):
    """By whoever sends; a loss of some packets before is no reason to give up."""
    lab("loss", "h2", "rail1", loss)
    rails = ("--mca", "btl", "self,usnic", "--mca", "btl_usnic_if_include", "rail1")
    command = ("--host", "h1,h2", *rails, *LIMITED, sys.executable, "-u", "-c", PROGRAM)
    process = lab.ompy_run(*command)
    try:
        assert process.stdout.readline() == "going\n"
        cut = time.monotonic()
        lab("cut", "h2", "rail1")
        out, err = process.communicate(timeout=CONFIGURED + SLACK)
    finally:
        lab("heal", "h2", "rail1")
        lab("loss", "h2", "rail1", 0)
    assert process.returncode == 1
    assert "MPI_ERR_PROC_FAILED" in err
    assert "sent 5 times without an answer" in err
    lost = [float(line.split()[2]) for line in out.splitlines() if line.startswith("lost 0")]
    assert lost, out
    assert 0 < lost[0] - cut < CONFIGURED + SLACK / 2
