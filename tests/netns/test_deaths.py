"""Hosts that go down while the job goes on: their ranks are replaced on those that are left."""

import sys
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH

pytestmark = [pytest.mark.proc, pytest.mark.netns]

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "survive.py")
SURVIVES = ("--mca", "mpi_ft_enable", "1")
LAST = "8 ranks, 300 steps: as without a failure"


@pytest.mark.nightly
@pytest.mark.parametrize("pml", ["ob1", "bfo"] if THOROUGH else ["ob1"])
def test_a_stencil_goes_on_without_a_host(lab, pml):
    words = ("-n", "8", "--host", "h1:4,h2:4", *SURVIVES, "--mca", "pml", pml)
    kill = ("--kill", "host=h2,after=2s")
    code, out, err = lab.run(*words, *kill, sys.executable, EXAMPLE, "300")
    assert code == 0, err
    assert out.splitlines()[-1] == LAST
    assert "h2 is lost with ranks 4-7" in err
    lab.assert_empty()


def test_a_host_that_falls_silent_is_lost(lab):
    """Nobody is told: heartbeats fail to come."""
    beats = ("--mca", "plm_base_heartbeat_ms", "200", "--mca", "plm_base_heartbeat_misses", "5")
    words = ("-n", "8", "--host", "h1:4,h2:4", *SURVIVES, *beats)
    job = lab.ompy_run(*words, sys.executable, EXAMPLE, "300")
    lab.wait_for_messages("h2")
    lab("crash", "h2")
    try:
        out, err = job.communicate(timeout=80)
    finally:
        lab("revive", "h2")
    assert job.returncode == 0, err
    assert out.splitlines()[-1] == LAST
    assert "h2 is lost with ranks 4-7" in err


@pytest.mark.parametrize("pml", ["ob1", "bfo"] if THOROUGH else ["bfo"])
def test_a_host_whose_last_rail_goes_is_lost(lab, pml):
    """Its agent lives and is reached, over the network that no message takes."""
    rails = ("--mca", "btl_tcp_if_include", "10.77.0.0/16", "--mca", "pml", pml)
    words = ("-n", "6", "--host", "h1:4,h2:2,h3:2", "--map-by", "node", *SURVIVES, *rails)
    job = lab.ompy_run(*words, sys.executable, EXAMPLE, "300")
    lab.wait_for_messages("h3")
    for link in ("rail1", "rail2"):
        lab("cut", "h3", link)
    try:
        out, err = job.communicate(timeout=80)
    finally:
        for link in ("rail1", "rail2"):
            lab("heal", "h3", link)
    assert job.returncode == 0, err
    assert out.splitlines()[-1] == LAST.replace("8", "6")
    assert "no path is left" in err
