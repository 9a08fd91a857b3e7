"""Every name of `mpi4py.MPI`, every member of its classes, and every parameter are here.

`mpi4py_names.json` has those of mpi4py 4.1.2, as `tests/support/api_names.py` prints them. If
OMPY_PEERS names the folder of an environment with mpi4py, the list is compared with that, too.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from ompy import MPI

from tests.support import api_names

LIST = Path(__file__).parent / "mpi4py_names.json"
THEIRS = json.loads(LIST.read_text())
# what is only there where a compiled module is
OF_THE_MODULE = {"__builtins__", "__loader__", "__pyx_capi__", "__test__"}
NAMES = sorted(THEIRS.keys() - OF_THE_MODULE)
MEMBERS = sorted(
    (name, member) for name, told in THEIRS.items() for member in told.get("class", {})
)


def test_the_list_is_whole() -> None:
    classes = [name for name, told in THEIRS.items() if "class" in told]
    assert len(THEIRS) > 380
    assert len(classes) > 20
    assert len(MEMBERS) > 600


@pytest.mark.parametrize("name", NAMES)
def test_every_name(name: str) -> None:
    theirs = THEIRS[name]
    assert hasattr(MPI, name)
    ours = api_names.what_is(MPI, getattr(MPI, name))
    if "class" in theirs:
        assert "class" in ours
    elif name == "Wtime":  # it is Python's own, which tells no parameters
        assert MPI.Wtime() >= 0.0
    else:
        assert ours == theirs


@pytest.mark.parametrize(("name", "member"), MEMBERS, ids=lambda word: word)
def test_every_member(name: str, member: str) -> None:
    theirs = THEIRS[name]["class"][member]
    assert api_names.member_of(MPI, getattr(MPI, name), member) == theirs


def test_the_list_is_that_of_mpi4py() -> None:
    peers = os.environ.get("OMPY_PEERS")
    if not peers:
        pytest.skip("OMPY_PEERS names no environment with mpi4py")
    command = [f"{peers}/bin/python", api_names.__file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == THEIRS
