"""A stranger that is asked for by name has to work: if not, the job ends and shows why."""

from __future__ import annotations

import pytest

from tests.plugins.strangers import STRANGERS, Stranger

pytestmark = pytest.mark.proc

# leaves a file when it runs, another one when MPI is up
PROGRAM = """
import pathlib
pathlib.Path("started").touch()
from mpi4py import MPI
pathlib.Path("up").touch()
"""
BEFORE = [stranger for stranger in STRANGERS if stranger.found_by == "launcher"]
IN_A_RANK = [stranger for stranger in STRANGERS if stranger.found_by == "rank"]
OTHERS = {"btl": "self,sm,", "pml": "ob1,", "coll": "basic,"}


def check(done, stranger: Stranger, chosen: str) -> None:
    """It is told once, with its traceback if there is one and with nobody else's."""
    asked = f"component {stranger.full_name} (asked for by --mca {stranger.framework} {chosen})"
    text = " ".join(done.err.split())
    assert text.count(asked) == 1
    reason = stranger.reason or stranger.said.partition("(")[2].removesuffix(")")
    assert f"{asked} cannot be used: {reason}" in text
    assert stranger.raised in done.err
    assert (f'/{stranger.module}/__init__.py", line ' in done.err) == bool(stranger.raised)
    for ours in ("/ompy/mca/", "/ompy/runtime/", "importlib"):
        assert ours not in done.err


@pytest.mark.parametrize("stranger", IN_A_RANK, ids=lambda stranger: stranger.full_name)
def test_what_cannot_be_opened_or_put_to_work_ends_the_job(commands, stranger: Stranger) -> None:
    chosen = OTHERS[stranger.framework] + stranger.name
    done = commands.run(2, PROGRAM, "--mca", stranger.framework, chosen)
    assert done.code == 1
    assert (commands.folder / "started").exists()
    assert not (commands.folder / "up").exists()
    check(done, stranger, chosen)


def test_what_cannot_be_imported_is_told_all_at_once_before_a_rank_starts(commands) -> None:
    assert {stranger.framework for stranger in BEFORE} == {"btl"}
    chosen = "self,tcp," + ",".join(stranger.name for stranger in BEFORE)
    done = commands.run(2, PROGRAM, "--mca", "btl", chosen)
    assert done.code == 1
    assert not (commands.folder / "started").exists()
    for stranger in BEFORE:
        check(done, stranger, chosen)


def test_one_alone(commands) -> None:
    done = commands.run(2, PROGRAM, "--mca", "btl", "self,sm,quits")
    assert done.code == 1
    head, *traceback = done.err.splitlines()[-5:]
    asked = "component btl:quits (asked for by --mca btl self,sm,quits)"
    assert head == f"ompy-run: error: {asked} cannot be used: SystemExit: 3"
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-1] == "SystemExit: 3"


def test_a_mistake_beside_it_counts_more(commands) -> None:
    done = commands.run(1, PROGRAM, "--mca", "btl", "self,quits,goood")
    assert done.code == 2
    assert "there is no btl component goood; did you mean good?" in done.err
    assert "component btl:quits (asked for by" in done.err


def test_those_that_work_may_be_asked_for(commands) -> None:
    done = commands.run(2, PROGRAM, "--mca", "btl", "self,sm,tcp,older,twin,chatty")
    assert done.code == 0, done.err
    assert (commands.folder / "up").exists()
