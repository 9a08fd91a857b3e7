"""`ompy-run --log-format json`: every line of the launcher's is an object."""

from __future__ import annotations

import json
import os
import re
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nosuch"], "there is no option --nosuch"),
        (["-n", "many", "true"], "'many'"),
        (["--mca", "btl_tcp_if_include", "999.1.1.1/99", "true"], "is not a network such as"),
        (["no-such-program"], "no-such-program"),
    ],
    ids=["option", "number", "parameter", "program"],
)
def test_a_command_line_that_cannot_be_read(words: list[str], said: str) -> None:
    """The form may come from an option or from the environment; the host is always told."""
    asked = ({}, {"OMPY_MCA_mca_base_log_format": "json"})
    for option, more in zip((["--log-format", "json"], []), asked, strict=True):
        command = [RUN, *option, *words]
        environment = {**os.environ, **more}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        (event,) = [json.loads(line) for line in done.stderr.splitlines()]
        assert said in event["text"]
        assert event["host"] == os.uname().nodename


def test_a_warning_of_the_launcher_tells_the_job() -> None:
    code, events = told("--fault", "drop:nth=1", sys.executable, "-c", PROGRAM)
    assert code == 0
    assert {str(event["event"]) for event in events} == {"warning", "faults delivered"}
    assert len({event["job"] for event in events}) == 1
    assert all(event["host"] == os.uname().nodename for event in events)


def test_what_ranks_warn_of() -> None:
    """By the reports of ranks that are asked where they are, and of an error that is fatal."""
    asked = "import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)\nc.Barrier()\n"
    fatal = "c.Set_errhandler(MPI.ERRORS_ARE_FATAL)\nc.send(1, dest=7)"
    code, events = told("--mca", "btl", "self,sm", sys.executable, "-c", PROGRAM + asked + fatal)
    assert code
    found = {(event["event"], event.get("rank")) for event in events}
    assert {("rank report", 0), ("rank report", 1)} <= found, events
    assert {("fatal error", 0), ("fatal error", 1)} & found, events


def test_a_fatal_error_of_a_window() -> None:
    """It is told as that of a communicator, and the window has its name once."""
    window = "w = MPI.Win.Allocate(8, comm=c)\nw.Set_errhandler(MPI.ERRORS_ARE_FATAL)\n"
    code, events = told(sys.executable, "-c", f"{PROGRAM}{window}w.Put(bytes(8), 7)")
    assert code
    texts = [str(event["text"]) for event in events if event["event"] == "fatal error"]
    assert texts
    start = re.compile(r"\*\*\* rank [01] of window 2: MPI_ERR_")
    assert all(map(start.match, texts)), texts


def test_where_ranks_are_when_a_job_takes_too_long() -> None:
    """One event has how all of them stand."""
    stuck = "c.recv(source=1 - c.rank)\n"
    code, events = told(
        "--no-deadlock-detection", "--timeout", "3", sys.executable, "-c", PROGRAM + stuck
    )
    assert code == 110
    (found,) = [event for event in events if event["event"] == "timed out" and "waits" in event]
    assert [each["rank"] for each in found["waits"]] == [0, 1]
    assert (found["class"], found["proven"]) == ("standing", False)


SIM = [str(Path(sys.executable).parent / "ompy"), "sim"]
STATISTICS = ("--mca", "btl_usnic_stats", "1", "--mca", "btl_base_verbose", "component")


def simulated(tmp_path: Path, *options: str) -> list[dict[str, object]]:
    """What a world in which rank 1 fails has to say, each line of it."""
    program = tmp_path / "fails.py"
    fails = "c.Barrier()\nif c.rank: raise SystemExit(3)\nc.recv(source=1)\n"
    program.write_text(PROGRAM + fails)
    command = [*SIM, *STATISTICS, *options, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode in {1, 3}, done.stderr
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_a_simulated_world(tmp_path: Path) -> None:
    events = simulated(tmp_path, "--log-format", "json")
    assert {event["job"] for event in events} == {events[0]["job"]}
    opened = [event for event in events if event["event"] == "mca:btl: usnic opened"]
    assert {(event["host"], event["rank"]) for event in opened} == {("host0", 0), ("host1", 1)}
    (failed,) = [event for event in events if event["event"] == "world failed"]
    assert (failed["level"], failed["kind"], failed["exit_code"]) == ("error", "failed", 3)
    assert [event["seed"] for event in events if event["event"] == "world ended"] == [0]


def test_a_sweep_by_the_parameter(tmp_path: Path) -> None:
    json_lines = ("--mca", "mca_base_log_format", "json")
    events = simulated(tmp_path, "--seeds", "2", "--jobs", "1", *json_lines)
    assert [e["seed"] for e in events if e["event"] == "world failed"] == [0, 1]
    assert [e["kinds"] for e in events if e["event"] == "sweep ended"] == [{"failed": 2}]
    kept = (tmp_path / "sim-failures" / "seed-1" / "output.txt").read_text()
    said = [json.loads(line)["rank"] for line in kept.splitlines()]
    assert said
    assert set(said) <= {0, 1}


def test_a_wrong_simulation(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("")
    command = [*SIM, "--log-format", "json", "--mca", "btl", "tpc", "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stderr)["event"] == "error"
