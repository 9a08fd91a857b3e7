"""A slice of the worlds that `tools/sweep sim` runs 10,000 of."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ompy.cli.simulating.sim import HASH_SEED, PREPARED

from tests.support import simulated_worlds
from tests.support.effort import effort

pytestmark = pytest.mark.proc

ROOT = Path(__file__).resolve().parents[2]
WORLDS = """
import sys
from tools.sweep.programs import sim
for number in range(1, 1 + int(sys.argv[1])):
    print(f"world {number}", *sim.run(number), flush=True)
"""


@pytest.mark.nightly
def test_generated_programs_end_well_over_every_mixture() -> None:
    count = effort(8)  # from 1: world 0 takes as long as sixty others, nobody ever answers there
    done = subprocess.run(
        [sys.executable, "-c", WORLDS, str(count)],
        capture_output=True,
        text=True,
        timeout=100 * count,
        cwd=ROOT,
        env={**os.environ, PREPARED: "1", "PYTHONHASHSEED": HASH_SEED},
    )
    last = re.findall(r"^world (\d+)", done.stdout, re.MULTILINE)
    again = f"python tools/sweep sim --world {len(last) + 1}"
    assert not done.returncode, f"{done.stderr}\nrepeat: {again}"
    assert len(last) == count


WAITED = """
import sys
from tools.sweep.programs import sim
for number in sys.argv[1:]:
    print(number, int(sim.run(int(number))[1]["raised"]), flush=True)
"""


@pytest.mark.nightly
def test_who_lost_a_path_does_not_leave_its_peer_waiting_for_ever() -> None:
    """Worlds of ob1: a rail's end that was never used, and half of a large message, see nothing."""
    done = subprocess.run(
        [sys.executable, "-c", WAITED, "1183", "8617"],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=ROOT,
        env={**os.environ, PREPARED: "1", "PYTHONHASHSEED": HASH_SEED},
    )
    assert done.stdout.split("\n") == ["1183 1", "8617 1", ""], done.stderr


def test_a_rank_that_finalizes_delivers_over_a_rail_that_is_found_to_be_gone() -> None:
    """bfo hides it; LEAVE, over the other rail, came long before the last message (world 377)."""
    done = subprocess.run(
        [sys.executable, "-c", WAITED, "377"],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=ROOT,
        env={**os.environ, PREPARED: "1", "PYTHONHASHSEED": HASH_SEED},
    )
    assert done.stdout == "377 0\n", done.stderr


def test_every_btl_between_hosts_is_in_a_mixture() -> None:
    mixtures = simulated_worlds.mixtures()
    names = {name for mixture in mixtures for name in mixture.split(",")}
    assert {"tcp", "usnic", "openib", "ofi"} <= names
    assert not {"sm", "self"} & names
    assert len(mixtures) == len(set(mixtures)) == 2 ** len(names) - 1
    drawn = [simulated_worlds.draw(number) for number in range(300)]
    assert {world.mixture for world in drawn} == set(mixtures)
    assert sum(world.spared for world in drawn) > 100
    for kind in simulated_worlds.KINDS:
        assert any(word.startswith(f"{kind}:") for world in drawn for word in world.options)
