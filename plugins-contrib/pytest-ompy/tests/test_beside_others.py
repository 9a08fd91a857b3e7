"""Beside other plug-ins and in other modes of pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

SUITE = """
    import os, pytest

    pytestmark = pytest.mark.ompy(n=2)

    ODD = [pytest.param(number, marks=pytest.mark.xdist_group("odd")) for number in (1, 3, 5)]

    @pytest.mark.parametrize("number", [0, 2, 4, *ODD])
    def test_many(comm, number):
        assert comm.allreduce(number) == 2 * number

    def test_bad(comm, worker_id):
        assert comm.rank == 1, worker_id
"""


def test_each_worker_of_xdist_has_its_own_pools(pytester, monkeypatch) -> None:
    """Also when `--dist loadgroup` adds something to the names of tests."""
    pytester.makepyfile(test_a=SUITE, test_b=SUITE.replace("def test_bad", "def bad"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    only = ["-p", "pytest_ompy.plugin", "-p", "xdist.plugin"]
    result = pytester.runpytest_subprocess(*only, "-n", "2", "-rf", "-v", "--dist", "loadgroup")
    result.assert_outcomes(passed=12, failed=1)
    result.stdout.re_match_lines_random(
        [
            r"FAILED test_a.py::test_bad - rank 0: AssertionError: gw[01]",
            r".*PASSED test_b.py::test_many\[5\].*",
            r"rank 0 of 2:",
        ]
    )


def test_the_timeouts_of_pytest_timeout(pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ompy(n=2)
        @pytest.mark.timeout(1)
        def test_hangs(comm):
            comm.recv(source=1 - comm.rank)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:xdist")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Timeout (>1.0s) from pytest-timeout*"])


def debug(pytester: pytest.Pytester, said: str, *arguments: str) -> tuple[int, str]:
    """Run pytest with something to read."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_ompy.plugin", *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    return done.returncode, done.stdout + done.stderr


def test_the_debugger_of_a_rank(pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ompy(n=2, timeout=5)
        def test_it(comm):
            mine = comm.rank + 40
            if comm.rank == 1:
                breakpoint()
            comm.barrier()
            assert mine == 40
        """
    )
    code, said = debug(pytester, "p mine + 100\nn\nc\np mine + 200\nq\n", "--pdb")
    assert code == pytest.ExitCode.INTERRUPTED, said
    first, second = re.split(r">+ debugger of rank 1 >+", said)[1:]
    assert "(Pdb, rank 1) 141" in first
    assert "E       assert 41 == 40" in first, "what has brought it to the second session"
    assert "(Pdb, rank 1) 241" in second
    assert "Exit: Quitting debugger" in second
    assert "1 failed" in second


def test_debuggers_of_several_ranks_take_turns(pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ompy(n=2)
        def test_it(comm):
            assert comm.rank == 5
        """
    )
    code, said = debug(pytester, "p 'rank', comm.rank\nc\n" * 2, "--pdb")
    assert code == pytest.ExitCode.TESTS_FAILED, said
    sessions = re.split(r">+ debugger of rank (\d) >+", said)[1:]
    assert sorted(sessions[::2]) == ["0", "1"]
    for rank, text in zip(sessions[::2], sessions[1::2], strict=True):
        assert f"(Pdb, rank {rank}) ('rank', {rank})" in text


def test_the_debugger_in_the_virtual_world(pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ompy(n=3, world="virtual", seeds=range(3), timeout=20)
        def test_it(comm):
            assert comm.allgather(comm.rank)[comm.rank] != 1
        """
    )
    code, said = debug(pytester, "p comm.rank, comm.size\nc\n", "--pdb")
    assert code == pytest.ExitCode.TESTS_FAILED, said
    assert "(Pdb) (1, 3)" in said


def test_a_project_with_settings_of_its_own(pytester) -> None:
    pytester.makepyprojecttoml(
        """
        [tool.pytest.ini_options]
        addopts = ["--import-mode=importlib", "--strict-markers", "--strict-config"]
        testpaths = ["tests"]
        pythonpath = ["src"]
        filterwarnings = ["error"]
        ompy_timeout = "30"
        """
    )
    pytester.mkdir("src").joinpath("solver.py").write_text("VALUE = 3\n")
    inner = pytester.mkdir("tests") / "inner"
    inner.mkdir()
    inner.parent.joinpath("conftest.py").write_text(
        "import pytest\n"
        "def pytest_addoption(parser):\n"
        "    parser.addoption('--flavour')\n"
        "@pytest.fixture(scope='package')\n"
        "def flavour(request):\n"
        "    return request.config.getoption('--flavour')\n"
    )
    for name in ("one", "two"):
        inner.joinpath(f"test_{name}.py").write_text(
            "import pytest, solver\n"
            "@pytest.mark.ompy(n=2)\n"
            "def test_it(comm, flavour):\n"
            "    assert (solver.VALUE, flavour) == (3, 'sweet')\n"
        )
    result = pytester.runpytest_subprocess("--flavour", "sweet")
    result.assert_outcomes(passed=2)
