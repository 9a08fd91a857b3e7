"""What a rank finds in its environment."""

import os
import sys
from pathlib import Path

import ompy
from ompy.frameworks.job import App, Job, Placement
from ompy.runtime.ranks.environment import rank_environment, search_path

JOB = Job(
    "0" * 16,
    (App(("a", "-x", "1"), 2), App(("b",), 1, (("PATH", "/own"), ("V", "w")), "/tmp")),
    ("here", "there"),
    (Placement(0, 0, 0, 0), Placement(1, 0, 1, 0), Placement(2, 1, 1, 1)),
)
DROP_IN = str(Path(ompy.__file__).parent / "dropin")
OURS = str(Path(sys.executable).parent)


def environment(rank, **base):
    return rank_environment(JOB, JOB.placements[rank], base, 8)


def test_identity():
    found = environment(2)
    expected = {
        "OMPI_COMM_WORLD_RANK": "2",
        "OMPI_COMM_WORLD_SIZE": "3",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        "OMPI_COMM_WORLD_NODE_RANK": "1",
        "OMPI_UNIVERSE_SIZE": "8",
        "OMPI_NUM_APP_CTX": "2",
        "OMPI_FIRST_RANKS": "0 2",
        "OMPI_APP_CTX_NUM_PROCS": "2 1",
        "OMPI_COMMAND": "b",
        "OMPI_ARGV": "",
        "OMPY_RANK": "2",
        "OMPY_SIZE": "3",
    }
    assert expected.items() <= found.items()
    assert environment(0)["OMPI_ARGV"] == "-x 1"
    assert environment(0)["OMPI_COMM_WORLD_LOCAL_SIZE"] == "1"


def test_an_outer_job_is_overridden():
    assert environment(0, OMPI_COMM_WORLD_RANK="7", OMPY_RANK="7")["OMPY_RANK"] == "0"


def test_drop_in_is_first_and_once():
    found = environment(0, PYTHONPATH=f"/mine:{DROP_IN}:/other")
    assert found["PYTHONPATH"] == os.pathsep.join([DROP_IN, "/mine", "/other"])
    assert environment(0)["PYTHONPATH"] == DROP_IN


def test_no_drop_in_unless_wanted():
    job = Job(JOB.job_id, JOB.apps, JOB.hosts, JOB.placements, mpi4py=False)
    assert "PYTHONPATH" not in rank_environment(job, job.placements[0], {}, 3)


def test_our_python_is_first_unless_an_environment_is_active():
    assert environment(0, PATH="/bin")["PATH"] == f"{OURS}:/bin"
    assert environment(0, PATH="/bin", VIRTUAL_ENV="/v")["PATH"] == "/bin"


def test_settings_of_the_app_win():
    found = environment(2, PATH="/bin", V="old")
    assert (found["PATH"], found["V"], found["PWD"]) == ("/own", "w", "/tmp")


def test_programs_are_looked_for_where_ranks_would(monkeypatch):
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert search_path(()) == f"{OURS}:/bin" == environment(0, PATH="/bin")["PATH"]
    monkeypatch.setenv("VIRTUAL_ENV", "/v")
    assert search_path(()) == "/bin"
    assert search_path((("PATH", "/own"),)) == "/own"
