"""`ompy-run --log-format json`: every line of the launcher's is an object."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.proc

RUN = str(Path(sys.executable).parent / "ompy-run")
PROGRAM = "from mpi4py import MPI\nc = MPI.COMM_WORLD\n"


def told(*arguments: str) -> tuple[int, list[dict[str, object]]]:
    command = [RUN, "-n", "2", "--log-format", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines()]


def test_a_rank_that_fails() -> None:
    fails = PROGRAM + "if c.rank: raise SystemExit(3)\nc.recv(source=1)"
    code, (event,) = told(sys.executable, "-c", fails)
    assert code == 3
    assert (event["event"], event["level"], event["rank"]) == ("job failed", "error", 1)
    assert (event["exit_code"], len(str(event["job"]))) == (3, 16)
    assert "Rank 1 ended with exit code 3" in str(event["text"])


def test_verbose_lines_of_launcher_and_ranks() -> None:
    verbose = ("--mca", "btl_base_verbose", "component", "--mca", "btl", "self,sm")
    code, events = told(*verbose, sys.executable, "-c", PROGRAM)
    assert code == 0
    opened = [event for event in events if event["event"] == "mca:btl: sm opened"]
    assert sorted(str(event["rank"]) for event in opened) == ["0", "1"]
    assert len({event["job"] for event in opened}) == 1


def test_a_wrong_command_line() -> None:
    code, (event,) = told("--mca", "btl_tcp_eager_limt", "4k", sys.executable, "-c", PROGRAM)
    assert code == 2
    assert event["event"] == "error"
    assert "did you mean btl_tcp_eager_limit" in str(event["text"])
