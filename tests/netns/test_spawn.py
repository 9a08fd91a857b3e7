"""Processes that are started later on hosts of the laboratory, by agents that ssh has started."""

import sys

import pytest

pytestmark = [pytest.mark.proc, pytest.mark.netns]

HOSTS = ("--all-hosts", "-n", "2", "--host", "h1:1,h2:1,h3:2,h4:2")
BEGIN = """
import os, sys
from ompy import MPI
c, parent = MPI.COMM_WORLD, MPI.Comm.Get_parent()
def info(host):
    return MPI.Info.Create({"host": host})
def words(what):
    return ["-c", sys.argv[1], sys.argv[1], what]
"""
SEVERAL = (
    BEGIN
    + """
if parent == MPI.COMM_NULL:
    made = c.Spawn_multiple(
        [sys.executable] * 2, [words("three"), words("four")], maxprocs=[2, 1],
        info=[info("h3"), info("h4")])
    whole = made.Merge(False)
    assert whole.allreduce(whole.rank) == 10, whole.size
    made.Disconnect()
else:
    print(os.uname().nodename, c.rank, sys.argv[2], flush=True)
    whole = parent.Merge(True)
    whole.allreduce(whole.rank)
    parent.Disconnect()
"""
)
FAILS = (
    BEGIN
    + """
if parent == MPI.COMM_NULL:
    made = c.Spawn(sys.executable, words("fails"), maxprocs=2, info=info("h3,h4"))
    made.recv(source=0)
elif c.rank == 1:
    os._exit(9)
else:
    c.recv(source=1)
"""
)


def test_several_programs_on_other_hosts(lab):
    code, out, err = lab.run(
        *HOSTS, "--tag-output", sys.executable, "-c", SEVERAL, SEVERAL, "begins"
    )
    assert code == 0, err
    assert sorted(line.partition(">:")[2] for line in out.splitlines()) == [
        "h3 0 three",
        "h3 1 three",
        "h4 2 four",
    ]
    assert all(line.startswith("[2,") for line in out.splitlines()), out
    lab.assert_empty()


def test_the_first_failure_decides(lab):
    """One of the later world, on another host than who waits for it."""
    code, _, err = lab.run(*HOSTS, sys.executable, "-c", FAILS, FAILS, "begins")
    assert code == 9, err
    assert "h4" in err, err
    lab.assert_empty()
