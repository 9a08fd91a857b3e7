"""What users are shown of rails that break: lines at the end or at once, and a file."""

from __future__ import annotations

import json

import pytest

PROGRAM = """
import sys
from mpi4py import MPI
from ompy.frameworks.paths.rail_events import RailEvent
from ompy.mpi.processes.life import current

world = MPI.COMM_WORLD
context = current().process.context
if world.rank == 1:  # what a PML that fails over does
    event = RailEvent(1, 0, "tcp eth1", "the cable was pulled", context.engine.now())
    context.rail_events.append(event)
    context.tell_rail(event)
    event.healed = context.engine.now() + 1
    context.tell_rail(event)
    event.messages, event.bytes, event.pause = 3, 70_000, 2_000_000
world.Barrier()
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def rails(text: str) -> list[str]:
    return [line for line in text.splitlines() if "tcp eth1" in line or "rails broke" in line]


@pytest.mark.proc
@pytest.mark.parametrize("shown", ["", "none", "live"])
def test_report(launch, program, tmp_path, shown: str) -> None:
    words = ["--mca", "bml_base_display_rails", shown] if shown else []
    ended = launch("-n", "2", "--report-rails", "rails.json", *words, "python", program)
    assert ended.code == 0, ended
    (event,) = json.loads((launch.directory / "rails.json").read_text())["rails"]
    assert event["messages"] == 3, "what was told at the end counts"
    assert event["healed_ns"] > event["noticed_ns"] >= 0
    lines = rails(ended.err)
    if shown == "none":
        assert not lines
        return
    assert lines[-2].endswith("rails broke 1 time, 1 healed (each rank counts its end of a rail):")
    assert (
        "3 messages or pieces went again, with 70000 bytes already sent, the first 2.0" in lines[-1]
    )
    assert len(lines) == (4 if shown == "live" else 2)


@pytest.mark.proc
def test_nothing_is_said_where_nothing_broke(launch, tmp_path) -> None:
    program = tmp_path / "quiet.py"
    program.write_text("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n")
    ended = launch("-n", "2", "python", program)
    assert ended.code == 0, ended
    assert not rails(ended.err)


@pytest.mark.proc
def test_a_file_that_cannot_be_written_is_said(launch, program) -> None:
    ended = launch("-n", "2", "--report-rails", "/nowhere/rails.json", "python", program)
    assert "--report-rails" in ended.err
