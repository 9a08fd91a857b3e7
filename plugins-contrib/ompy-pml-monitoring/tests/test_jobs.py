"""Real jobs through ompy-run, as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from ompy import MPI
comm = MPI.COMM_WORLD
pair = comm.Split(comm.rank // 2, -comm.rank)
if comm.rank < 2:
    pair.Sendrecv(bytes(3 << 10), 1 - pair.rank, recvbuf=bytearray(3 << 10), source=1 - pair.rank)
if comm.rank == 0:
    for source in (1, 2):
        comm.Recv(bytearray(100_000), MPI.ANY_SOURCE)
else:
    comm.Send(bytes(50_000), 0)
comm.Barrier()
print("done")
"""
MATRIX = """\
monitoring: what 3 rank(s) sent each other; rows send, columns receive
(. no message; k, M, G: powers of 1000 for messages, of 1024 for bytes)

user messages (by the program): 4 with 106144 bytes

messages    0    1    2  sum
       0    .    1    .    1
       1    2    .    .    2
       2    1    .    .    1
     sum    3    1    .    4

   bytes     0     1     2   sum
       0     .  3072     .  3072
       1   52K     .     .   52K
       2   49K     .     .   49K
     sum  101K  3072     .  104K
"""
ENABLED = ("--mca", "pml_monitoring_enable", "1")


def job(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return ompy_run(tmp_path, "-n", "3", *options, sys.executable, "-c", PROGRAM)


def ompy_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if "OMPY_MCA" not in name}
    return subprocess.run(
        [sys.executable, "-m", "ompy.cli.run", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


def test_the_matrix(tmp_path: Path) -> None:
    done = job(tmp_path, *ENABLED)
    assert (done.returncode, done.stdout) == (0, "done\n" * 3)
    user, internal = done.stderr.split("\ninternal messages")
    assert user.splitlines() == MATRIX.splitlines()
    assert internal.startswith(" (inside collectives and the like): ")
    assert "message size  user  internal\n" in internal
    assert "no counts" not in internal
    assert "not received" not in internal


def test_not_enabled_it_says_nothing(tmp_path: Path) -> None:
    done = job(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n" * 3, "")


def test_json(tmp_path: Path) -> None:
    done = job(tmp_path, *ENABLED, "--mca", "pml_monitoring_output", "traffic.json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads((tmp_path / "traffic.json").read_text())
    assert (told["format"], told["ranks"], told["missing"]) == (1, 3, {})
    assert told["user"]["sent"] == told["user"]["received"]
    assert told["user"]["sent"]["messages"] == [[0, 1, 0], [2, 0, 0], [1, 0, 0]]
    assert told["user"]["sent"]["bytes"] == [[0, 3072, 0], [53_072, 0, 0], [50_000, 0, 0]]
    assert told["user"]["sizes"] == {"2048": 2, "32768": 2}
    assert told["internal"]["sent"] == told["internal"]["received"]


def test_what_the_readme_shows() -> None:
    folder = Path(__file__).resolve().parents[1]
    root = folder.parents[1]
    if not (root / "examples" / "ring.py").exists():
        pytest.skip("the examples are in ompy's repository")
    readme = (folder / "README.md").read_text()
    shown = readme.split("    $ ompy-run ", 1)[1].split("\nIt is a component", 1)[0]
    command, *lines = [line.removeprefix("    ") for line in shown.rstrip().splitlines()]
    done = ompy_run(root, *command.replace("python", sys.executable).split())
    assert done.returncode == 0
    assert (done.stdout + done.stderr).splitlines() == lines
