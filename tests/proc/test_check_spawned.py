"""`ompy-run --check` of a job and the processes that it spawns: both ends of what goes between."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc
BIN: Final = Path(sys.executable).parent
FOUND: Final = 5
PATIENCE: Final = 60  # s; arbitrary, far beyond what any program takes
PARENT: Final = """\
import sys
from array import array
from mpi4py import MPI
comm = MPI.COMM_WORLD
kids = comm.Spawn(sys.executable, ["child.py"], maxprocs=2)
{0}
kids.Disconnect()
"""
CHILD: Final = """\
from array import array
from mpi4py import MPI
comm = MPI.COMM_WORLD
up = MPI.Comm.Get_parent()
{0}
up.Disconnect()
"""
LINES: Final = {"app.py": PARENT.count("\n") - 1, "child.py": CHILD.count("\n") - 1}


class Pair(NamedTuple):
    """What a job and what it spawns do, with a fault where the letter is another.

    Attributes:
        kind: class of the fault.
        parent, child: their line; `{0}` is the type of the data, and `{1}` how much of it.
        wrong: type and amount at the child of the program with the fault.
    """

    kind: str
    parent: str
    child: str
    wrong: tuple[str, int] = ("i", 4)


PAIRS: Final = {
    "a message to a child": Pair(
        "type-mismatch",
        "kids.Send(array('{0}', {1} * [0]), comm.rank)",
        "up.Recv(array('{0}', {1} * [0]), comm.rank)",
        ("q", 4),
    ),
    "a message of a child": Pair(
        "type-mismatch",
        "kids.Irecv(array('{0}', {1} * [0]), comm.rank).Wait()",
        "up.Isend(array('{0}', {1} * [0]), comm.rank).Wait()",
    ),
    "a broadcast to children": Pair(
        "type-mismatch",
        "kids.Bcast(array('{0}', {1} * [0]), MPI.PROC_NULL if comm.rank else MPI.ROOT)",
        "up.Bcast(array('{0}', {1} * [0]), 0)",
        ("q", 4),
    ),
    "a gather from children": Pair(
        "count-mismatch",
        "kids.Gather(None, array('{0}', 2 * {1} * [0]), MPI.PROC_NULL if comm.rank else MPI.ROOT)",
        "up.Gather(array('{0}', {1} * [0]), None, 0)",
        ("d", 3),
    ),
    "a group of both": Pair(
        "type-mismatch",
        "whole = kids.Merge(); whole.Bcast(array('{0}', {1} * [0])); whole.Free()",
        "whole = up.Merge(True); whole.Bcast(array('{0}', {1} * [0])); whole.Free()",
        ("q", 4),
    ),
}


def check(folder: Path, pair: Pair, kind: str, count: int) -> tuple[list[dict[str, Any]], str, int]:
    """Run a job under the checker; its children have such data."""
    (folder / "app.py").write_text(PARENT.format(pair.parent.format("d", 4)))
    (folder / "child.py").write_text(CHILD.format(pair.child.format(kind, count)))
    words = [str(BIN / "ompy-run"), "-n", "2", "--oversubscribe", "--check-report", "found.json"]
    done = subprocess.run(
        [*words, "--timeout", "40", sys.executable, "app.py"],
        cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    found = json.loads((folder / "found.json").read_text())["findings"]
    return found, done.stderr, done.returncode


@pytest.mark.parametrize("name", PAIRS)
def test_both_ends_are_compared(name: str, tmp_path: Path) -> None:
    pair = PAIRS[name]
    found, said, code = check(tmp_path, pair, *pair.wrong)
    assert code == FOUND, said
    ours = [one for one in found if one["class"] == pair.kind]
    assert ours, found
    sites = {(Path(site["file"]).name, site["line"]) for one in ours for site in one["sites"]}
    assert sites == set(LINES.items()), found


@pytest.mark.parametrize("name", PAIRS if THOROUGH else list(PAIRS)[::4])
def test_the_same_types_are_right(name: str, tmp_path: Path) -> None:
    found, said, code = check(tmp_path, PAIRS[name], "d", 4)
    assert (found, code) == ([], 0), said


def test_a_communicator_that_is_never_left(tmp_path: Path) -> None:
    """The one to the children is one that the parents have made; the children did not make it."""
    pair = Pair("leak", "os = __import__('os')  # of '{0}'\nkids = MPI.COMM_SELF.Dup()", "")
    found, said, code = check(tmp_path, pair, "d", 4)
    assert code == FOUND, said
    assert [one["class"] for one in found] == ["leak"], found
    assert {site["call"] for site in found[0]["sites"]} == {"comm.Spawn"}
