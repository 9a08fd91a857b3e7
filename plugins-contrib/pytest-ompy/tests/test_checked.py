"""Tests that the checker looks at."""

from __future__ import annotations

HEAD = """
import pytest
from mpi4py import MPI
from array import array

"""


def test_what_is_found_makes_a_test_fail(pytester, run) -> None:
    path = pytester.makepyfile(
        HEAD
        + """
@pytest.mark.ompy(n=2, check=True)
def test_right(comm):
    other = 1 - comm.rank
    assert comm.sendrecv(comm.rank, dest=other, source=other) == other

@pytest.mark.ompy(n=2, check=True)
def test_buffered(comm):
    comm.send("mine", dest=1 - comm.rank)
    assert comm.recv(source=1 - comm.rank) == "mine"

@pytest.mark.ompy(n=2, check=True)
def test_types(comm):
    if comm.rank == 0:
        comm.Send(array("i", [0] * 4), dest=1)
    else:
        comm.Recv(array("f", [0] * 4), source=0)

@pytest.mark.ompy(n=2, check=True)
def test_expected(comm):
    if comm.rank == 0:
        comm.Send(array("i", [0] * 4), dest=1)  # ompy: expect type-mismatch
    else:
        comm.Recv(array("f", [0] * 4), source=0)

@pytest.mark.ompy(n=2, check=True)
def test_left(comm):
    if comm.rank == 0:
        comm.send("data", dest=1, tag=7)

@pytest.mark.ompy(n=2)
def test_unchecked(comm):
    comm.send("mine", dest=1 - comm.rank)
    assert comm.recv(source=1 - comm.rank) == "mine"
"""
    )
    line = path.read_text().splitlines().index('    comm.send("mine", dest=1 - comm.rank)') + 1
    result = run("-v")
    result.assert_outcomes(passed=3, failed=3)
    result.stdout.fnmatch_lines(
        ["*::test_right PASSED*", "*::test_expected PASSED*", "*::test_unchecked PASSED*"]
    )
    text = result.stdout.str()
    assert f'ranks 0, 1 at {path.name}:{line}: comm.send("mine"' in text
    assert "buffering-dependent: these sends end only because" in text
    assert "type-mismatch: rank 0 sends 4 int" in text
    assert f'rank 0 at {path.name}:{line + 6}: comm.Send(array("i", [0] * 4), dest=1)' in text
    assert f'rank 1 at {path.name}:{line + 8}: comm.Recv(array("f", [0] * 4), source=0)' in text
    assert "leak: comm.send: the message to rank 1 with tag 7 was never received" in text
    result.stdout.fnmatch_lines(["FAILED *::test_types - type-mismatch: *"])


def test_failures_and_deadlocks_come_with_what_was_found(pytester, run) -> None:
    pytester.makepyfile(
        HEAD
        + """
@pytest.mark.ompy(n=2, check=True)
def test_circle(comm):
    comm.recv(source=1 - comm.rank)

@pytest.mark.ompy(n=2, check=True)
def test_value(comm):
    comm.barrier()
    assert comm.rank == 0

@pytest.mark.xfail(reason="known", strict=True)
@pytest.mark.ompy(n=2, check=True)
def test_known(comm):
    comm.send("mine", dest=1 - comm.rank)
    comm.recv(source=1 - comm.rank)

@pytest.mark.ompy(n=2, check=True, timeout=2)
def test_asleep(comm):
    import time
    while comm.rank == 1:
        time.sleep(0.1)
"""
    )
    result = run("-v")
    result.assert_outcomes(failed=3, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*Deadlock: ranks 0, 1 can never go on*",
            "*- ompy check -*",
            "*deadlock: ranks can never go on, each waits for the next (0 -> 1 -> 0)*",
            "*assert 1 == 0",
            "*no end after 2 s*",
        ]
    )


def test_every_marked_test_by_an_option(pytester, run) -> None:
    pytester.makepyfile(
        HEAD
        + """
@pytest.mark.ompy(n=2)
def test_buffered(comm):
    comm.send("mine", dest=1 - comm.rank)
    comm.recv(source=1 - comm.rank)

@pytest.mark.ompy(n=2, world="virtual")
def test_virtual(comm):
    comm.barrier()
"""
    )
    run("--ompy-check").assert_outcomes(failed=1, passed=1)
