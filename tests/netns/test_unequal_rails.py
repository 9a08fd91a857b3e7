"""Two rails of which one is far slower: a flood of small messages arrives in order, all the same.

Half of the messages go over the slow rail, so those of the fast one run ahead of them. With numbers
of 16 bits and no window 16,848 of 300,000 arrived off by exactly 65,536, under ob1 as it is by
default; bfo took them for duplicates, and waited for ever.
"""

import re
import subprocess
import sys

import pytest

from tests.support.effort import effort

pytestmark = [pytest.mark.proc, pytest.mark.netns]

# what was measured takes minutes; with fewer messages, a smaller window is full as often
MESSAGES, WINDOW = (300_000, 65_536) if effort(1) >= 10 else (12_000, 1_000)
PATIENCE = 900.0  # s; far beyond what anything here takes

PROGRAM = """
import struct, sys
from mpi4py import MPI
c = MPI.COMM_WORLD
count = int(sys.argv[1])
if c.rank == 0:
    for k in range(count):
        c.Send(struct.pack('<Q', k), 1, 5)
else:
    wrong = {}
    room = bytearray(8)
    for k in range(count):
        c.Recv(room, 0, 5)
        off = struct.unpack('<Q', room)[0] - k
        if off:
            wrong[off] = wrong.get(off, 0) + 1
    print('wrong', sum(wrong.values()), 'off by', sorted(wrong)[:4], flush=True)
"""


@pytest.fixture
def slow_rail(lab):
    """The first rail of h1 sends 500 kbit/s, and holds 200 ms of them back."""
    tc = ("tc", "-netns", f"{lab.name}-h1", "qdisc")
    shape = ("tbf", "rate", "500kbit", "burst", "10kb", "latency", "200ms")
    subprocess.run([*tc, "replace", "dev", "rail1", "root", *shape], check=True)
    yield
    subprocess.run([*tc, "delete", "dev", "rail1", "root"], check=True)


@pytest.mark.nightly
@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
def test_messages_over_a_slow_and_a_fast_rail_keep_their_order(lab, slow_rail, pml):
    rails = ("--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "rail1,rail2")
    window = ("--mca", f"pml_{pml}_message_window", WINDOW)
    job = lab.ompy_run("--host", "h1,h2", "--mca", "pml", pml, *rails, *window,
                       sys.executable, "-c", PROGRAM, MESSAGES)  # fmt: skip
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, err
    assert re.findall("wrong.*", out) == ["wrong 0 off by []"]
