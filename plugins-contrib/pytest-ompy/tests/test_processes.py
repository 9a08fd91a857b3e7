"""The processes of pools: kept while they are good, gone when they are not, never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PATIENCE_S = 20.0

SLOW = """
    import time
    import pytest

    @pytest.mark.ompy(n=2)
    def test_slow(comm):
        open(f"up{comm.rank}", "w").close()
        if comm.rank:
            comm.barrier()
        time.sleep(1000)
"""


def tagged(token: str) -> dict[int, str]:
    """Processes with a variable of this value in their environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and token.encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().decode()
        except OSError:
            pass  # it has gone
    return found


def wait_for(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.fixture
def token(pytester, monkeypatch) -> Iterator[str]:
    """Marks all processes of a test; none must be left."""
    value = f"{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("PYTEST_OMPY_TEST", value)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    yield value
    wait_for(lambda: not tagged(value), f"left: {tagged(value)}")


def test_a_pool_is_replaced_after_a_failure_only(pytester, run, token) -> None:
    pytester.makepyfile(
        """
        import os, pytest

        pytestmark = pytest.mark.ompy(n=1)

        @pytest.fixture(autouse=True)
        def note(comm):
            with open("pids", "a") as pids:
                pids.write(f"{os.getpid()}\\n")

        def test_1(comm): pass

        def test_2(comm): pass

        def test_3(comm): assert False

        def test_4(comm): pass

        def test_5(comm): pass

        @pytest.mark.ompy(mca={"btl": "self,tcp"})
        def test_6(comm): pass
        """
    )
    run().assert_outcomes(passed=5, failed=1)
    first, *others = (pytester.path / "pids").read_text().split()
    assert others[:2] == [first, first]
    assert others[2] == others[3] != first
    assert others[4] not in {first, others[3]}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_controller(pytester, token, number) -> None:
    pytester.makepyfile(SLOW)
    controller = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "pytest_ompy.plugin"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_for(lambda: all((pytester.path / f"up{rank}").exists() for rank in range(2)), "ranks up")
    assert len(tagged(token)) >= 5, "pytest, ompy-run, its agent and two ranks"
    controller.send_signal(number)
    out, _ = controller.communicate(timeout=PATIENCE_S)
    wait_for(lambda: not tagged(token), f"left after {number.name}: {tagged(token)}")
    if number == signal.SIGINT:
        assert b"KeyboardInterrupt" in out
        assert controller.returncode == pytest.ExitCode.INTERRUPTED, out.decode()
    else:
        assert controller.returncode == -number, out.decode()


def test_a_rank_that_dies_between_two_tests(pytester, run, token) -> None:
    pytester.makepyfile(
        """
        import os, threading, time, pytest

        @pytest.mark.ompy(n=1)
        def test_leaves_a_bomb(comm):
            threading.Timer(0.2, lambda: os._exit(7)).start()

        def test_meanwhile():
            time.sleep(1)

        @pytest.mark.ompy(n=1)
        def test_next(comm):
            assert comm.allreduce(1) == 1
        """
    )
    result = run("-W", "default")
    result.assert_outcomes(passed=3, warnings=1)
    result.stdout.fnmatch_lines(
        ["*PytestWarning: the ranks ended between two tests: *Rank 0 ended with exit code 7*"]
    )


def test_fixtures_of_modules_are_taken_down_after_a_failure(pytester, run, token) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="module")
        def module(tmp_path_factory):
            yield
            open("down", "a").write("x")

        @pytest.mark.ompy(n=1)
        def test_bad(comm, module):
            assert False

        @pytest.mark.ompy(n=1)
        def test_good(comm, module): pass
        """
    )
    run().assert_outcomes(passed=1, failed=1)
    assert (pytester.path / "down").read_text() == "xx"


def test_forks_of_tests_hold_nothing_up(pytester, run, token) -> None:
    """A process that a test leaves behind has no end of a channel and keeps no pool alive."""
    pytester.makepyfile(
        """
        import os, time, pytest

        @pytest.mark.ompy(n=1)
        def test_forks(comm):
            if os.fork() == 0:
                time.sleep(1000)
        """
    )
    began = time.monotonic()
    run().assert_outcomes(passed=1)
    assert time.monotonic() - began < PATIENCE_S
