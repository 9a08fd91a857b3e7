"""The README's other command: a laboratory of its own, where a link really goes down."""

import subprocess
import sys
from pathlib import Path

import pytest
from ompy.runtime.rails.rail_record import replay
from ompy.runtime.rails.rail_watch import State

from tests.support.effort import THOROUGH

pytest.importorskip("ompy_components.pml.bfo", reason="there is no PML that fails over")
pytestmark = [pytest.mark.proc, pytest.mark.netns]
LAB = Path(__file__).resolve().parents[2] / "tools" / "lab"


@pytest.mark.skipif(not THOROUGH, reason="ten seconds: part of tools/nightly")
def test_the_stream_goes_on_over_the_other_rail(tmp_path):
    problem = subprocess.run([sys.executable, LAB, "why-not"], capture_output=True, text=True)
    if problem.returncode:
        pytest.skip(problem.stdout.strip())
    path = tmp_path / "rails.jsonl"
    words = ["--after", "1", "--down", "1", "--seconds", "8", "--record-rails", path]
    done = subprocess.run(
        [sys.executable, LAB, "pull_the_cable", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "blocks arrived as they were sent" in done.stdout
    with path.open() as file:
        *_, (_, watch) = replay(file)
    states = [change.state for change in watch.changes]
    assert (states[0], states[-1]) == (State.BROKEN, State.UP), done.stderr
    assert {change.rail for change in watch.changes} == {"rail1 h1 - h2"}
    assert all(rail.sent > 10_000_000 for rail in watch.rails.values())
