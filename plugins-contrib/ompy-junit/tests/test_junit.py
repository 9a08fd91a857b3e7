"""Jobs that end well and badly, and what the report says of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from ompy.mca.reporting import Finding

from ompy_junit.report import JobReport

RUN = str(Path(sys.executable).parent / "ompy-run")


def job(tmp_path: Path, *arguments: str, file: str = "job.xml") -> tuple[int, str, Path]:
    path = tmp_path / file
    done = subprocess.run(
        [RUN, "-n", "2", *arguments],
        env={**os.environ, "OMPY_JUNIT": str(path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr, path


def program(text: str) -> list[str]:
    return [sys.executable, "-c", f"from mpi4py import MPI\nc = MPI.COMM_WORLD\n{text}"]


def test_a_job_that_ends_well(tmp_path: Path) -> None:
    code, said, path = job(tmp_path, *program("c.barrier()"))
    assert (code, said) == (0, "")
    suite = ET.parse(path).getroot()
    assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "1", "0")
    known = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert (known["ranks"], known["exit_code"]) == ("2", "0")
    assert suite.find("testcase/failure") is None


def test_a_rank_that_fails(tmp_path: Path) -> None:
    code, said, path = job(tmp_path, *program("if c.rank: raise SystemExit(7)\nc.recv()"))
    assert code == 7
    failure = ET.parse(path).getroot().find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "Rank 1 ended with exit code 7, so the whole job was ended."
    assert failure.text is not None
    assert failure.text.strip() in said


def test_rails_that_broke_and_faults_are_in_its_output(tmp_path: Path) -> None:
    faults = ["--mca", "btl", "self,tcp", "--fault", "drop:probability=0.9,rank=0"]
    code, _, path = job(tmp_path, *faults, *program("c.barrier()"))
    assert code == 0
    output = ET.parse(path).getroot().findtext("testcase/system-out")
    assert output is not None
    assert "drop:probability=0.9,rank=0" in output


def test_a_file_that_cannot_be_written_changes_nothing_of_the_job(tmp_path: Path) -> None:
    code, said, _ = job(tmp_path, *program("c.barrier()"), file="nowhere/job.xml")
    assert code == 0
    assert said.startswith("ompy-junit: OMPY_JUNIT: ")


def test_a_job_that_did_not_ask_has_none(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "OMPY_JUNIT"}
    command = [RUN, "-n", "2", *program("c.barrier()")]
    subprocess.run(command, env=environment, cwd=tmp_path, check=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "a\x00b", "\ud800"])
def test_what_xml_cannot_hold_is_replaced(tmp_path: Path, text: str) -> None:
    report = JobReport("ab", [text], 1, ["h"])
    report.findings.append(Finding("job failed", text, "error", {"headline": text}))
    report.rails.append(text)
    report.write(str(tmp_path / "x.xml"), 1, 0.5)
    case = ET.parse(tmp_path / "x.xml").getroot().find("testcase")
    assert case is not None
    assert "?" in str(case.get("name"))
