"""The emulated RDMA adapter between hosts, over Ethernet, and a cable that is pulled."""

import json
import sys
import time
from pathlib import Path

import pytest
from ompy.frameworks.paths.path_watch import TIMEOUT_MS

from tests.support.effort import THOROUGH
from tests.support.hca_programs import OPCODES, TIMING, WRONG

pytestmark = [pytest.mark.proc, pytest.mark.netns]

# what the ranks tell each other goes over the rail that stays
TALK = ("--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "rail2")
FIRST_TRY = (4096 << TIMING.timeout) / 1e9
SLACK = 5.0  # s; arbitrary: the machine does other things


def job(lab, program, folder):
    words = (sys.executable, "-m", "tests.support.rank", f"tests.support.hca_programs:{program}")
    return lab.ompy_run("--host", "h1,h2", *TALK, *words, folder, "")


def results(folder):
    return [json.loads(Path(folder, str(rank)).read_text()) for rank in range(2)]


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_what_may_not_be_done_between_hosts(lab, tmp_path):
    process = job(lab, "wrong_access", tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    near, far = results(tmp_path)
    assert near == [
        [opcode.name, why, "REM_ACCESS_ERR", "ERR"] for opcode in OPCODES for why in WRONG
    ]
    assert far == ["ERR"] * len(near)


def test_a_pulled_cable(lab, tmp_path):
    """Both ends fail in the time the agents need, and work again when it is back."""
    process = job(lab, "pulled_cable", tmp_path)
    try:
        assert process.stdout.readline() == "going\n"
        time.sleep(0.3)
        cut = time.monotonic()
        lab("cut", "h2", "rail1")
        time.sleep(2)
    finally:
        lab("heal", "h2", "rail1")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    near, far = results(tmp_path)
    assert far["events"] == ["LINK_DOWN", "LINK_UP"], "it is its cable"
    for found in (near, far):
        assert found["status"] == "RETRY_EXC_ERR"
        assert found["afterwards"] == "SUCCESS"
        assert found["failed"] - cut < FIRST_TRY + TIMEOUT_MS / 1000 + SLACK
        print(f"failed after {found['failed'] - cut:.3f} s", found["events"])
