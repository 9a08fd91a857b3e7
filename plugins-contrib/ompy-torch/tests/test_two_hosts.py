"""Training on two hosts, which are network namespaces, with a rail that is cut in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import BINARIES, PROGRAMS, Run, needs_torch

LAB = Path(__file__).resolve().parents[3] / "tools" / "lab"
STEPS = 400
SENT = 200_000  # bytes over the rail that is cut: some dozens of steps
PATIENCE = 280.0  # s

pytestmark = needs_torch


class Lab:
    """A laboratory of this repository."""

    def __init__(self, name: str) -> None:
        self.name = name

    def words(self, *words: str) -> list[str]:
        return [sys.executable, str(LAB), "--name", self.name, *words]

    def do(self, *words: str) -> None:
        subprocess.run(self.words(*words), check=True, capture_output=True, timeout=PATIENCE)

    def sent(self, host: str, link: str) -> int:
        """Bytes that a host has sent over a link."""
        path = f"/sys/class/net/{link}/statistics/tx_bytes"
        command = ["ip", "netns", "exec", f"{self.name}-{host}", "cat", path]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.fixture(name="lab")
def fixture_lab() -> Iterator[Lab]:
    if not LAB.exists():
        pytest.skip("tools/lab is not here")
    why_not = subprocess.run(
        [sys.executable, str(LAB), "why-not"], capture_output=True, text=True, check=False
    )
    if why_not.returncode:
        pytest.skip(why_not.stdout)
    lab = Lab(f"torch{os.getpid()}")
    lab.do("up", "--hosts", "2", "--rails", "2")
    yield lab
    lab.do("down")


def test_a_rail_between_two_hosts_is_cut_and_nothing_changes(lab: Lab, job: Run) -> None:
    whole = job(2, "train.py", "ompy", STEPS).stdout
    options = ["--host", "h1:1,h2:1", "--mca", "pml", "bfo", "--mca", "btl", "self,tcp"]
    options += ["--mca", "btl_tcp_if_include", "rail1,rail2", "-x", "OMP_NUM_THREADS=1"]
    program = [sys.executable, str(PROGRAMS / "train.py"), "ompy", str(STEPS)]
    command = lab.words("exec", "h1", "--", str(BINARIES / "ompy-run"), *options, *program)
    training = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + PATIENCE
    while lab.sent("h1", "rail1") < SENT:
        assert training.poll() is None, training.communicate()
        assert time.monotonic() < until, "nothing is sent"
        time.sleep(0.02)
    lab.do("cut", "h1", "rail1")
    assert training.poll() is None, "it was cut too late"
    out, err = training.communicate(timeout=PATIENCE)
    assert training.returncode == 0, err
    assert out == whole
    assert "rail" in err, "somebody says that it is gone"
