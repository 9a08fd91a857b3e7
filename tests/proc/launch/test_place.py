"""Ranks that are bound: what the kernel says of them, however they were started."""

import os
import sys

import pytest

from tests.support.effort import THOROUGH

nightly = pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
pytestmark = [
    pytest.mark.proc,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="ranks on cores of their own"),
]

FIRST, SECOND = sorted(os.sched_getaffinity(0))[:2]
ALLOWED = {FIRST, SECOND}
SHELL = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do case "$1" in -l|-p|-o) shift;; esac; shift; done
shift
exec taskset -c %s sh -c "$*"
"""
SAYS = """
import os, threading
from mpi4py import MPI
seen = []
thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
thread.start(); thread.join()
assert seen == [os.sched_getaffinity(0)], "threads inherit"
from ompy.mpi.processes.life import current
own = current().process.context.engine.has_core
print(MPI.COMM_WORLD.rank, *os.sched_getaffinity(0), os.environ.get("OMPY_PLACE"), own, flush=True)
"""
SPAWNS = f"""
import sys
code = {SAYS!r}
exec(code)
if MPI.Comm.Get_parent() == MPI.COMM_NULL:
    argv = ["-c", code + "MPI.Comm.Get_parent().Disconnect()"]
    MPI.COMM_SELF.Spawn(sys.executable, argv, 1).Disconnect()
"""


@pytest.fixture
def two_cores():
    """Jobs of the test may use two cores, whatever there is."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, ALLOWED)
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.parametrize("spares", [pytest.param(0, marks=nightly), 1])
def test_forks_threads_spawned_ranks_and_spares(launch, two_cores, spares):
    result = launch.python(1, SPAWNS, "--bind-to", "core", "--report-bindings", "--spares", spares)
    assert result.code == 0, result
    assert result.out.splitlines() == [f"0 {FIRST} 0/1 True", f"0 {SECOND} 0/1 True"], result
    told = [line for line in result.err.splitlines() if " is bound to " in line]
    assert [line.split(" on ")[0] for line in told] == ["ompy-run: rank 0", "ompy-run: rank 1"]
    assert f"cpu {SECOND}: [./B]" in told[1].replace("][", "/"), result


def test_programs_that_are_executed(launch, two_cores):
    result = launch("-n", 2, "--bind-to", "core", "grep", "Cpus_allowed_list", "/proc/self/status")
    assert result.code == 0, result
    assert sorted(line.split()[1] for line in result.out.splitlines()) == [str(FIRST), str(SECOND)]


def test_ranks_are_where_the_rank_file_says(launch, two_cores, tmp_path):
    path = tmp_path / "ranks"
    path.write_text("rank 0=localhost slot=1\nrank 1=+n0 slot=0\n")
    result = launch.python(2, SAYS, "--rankfile", path)
    assert result.code == 0, result
    told = [f"0 {SECOND} 0/1 True", f"1 {FIRST} 0/1 True"]
    assert sorted(result.out.splitlines()) == told, result


def test_nothing_is_bound_unless_it_is_asked_for(launch, two_cores):
    result = launch.python(2, SAYS, "--report-bindings", "--map-by", "core")
    assert sorted(result.out.splitlines()) == [f"{n} {FIRST} {SECOND} None True" for n in range(2)]
    assert result.err.count(f"is not bound; it may run on cpus {FIRST}") == 2, result


def test_too_many_ranks_run_nowhere(launch, two_cores, tmp_path):
    line = ("-n", 3, "--bind-to", "core")
    result = launch(*line, "touch", "there")
    assert (result.code, result.out) == (2, ""), result
    assert "3 rank(s) were to be bound on this host, and it has 2 cores" in result.err
    assert not (tmp_path / "there").exists()
    result = launch(*line, "--map-by", "slot:OVERSUBSCRIBE", sys.executable, "-c", SAYS)
    alone = [f"1 {SECOND} 0/1 True"]
    assert sorted(result.out.splitlines()) == [
        f"0 {FIRST} 0/2 False",
        *alone,
        f"2 {FIRST} 1/2 False",
    ]


@nightly
def test_a_spawn_that_has_no_core_is_an_error(launch, two_cores):
    code = (
        "import sys\nfrom mpi4py import MPI\n"
        "try: MPI.COMM_WORLD.Spawn(sys.executable, ['-c', ''], 1)\n"
        "except MPI.Exception as problem: print(problem.Get_error_class() == MPI.ERR_SPAWN)\n"
    )
    result = launch.python(2, code, "--bind-to", "core")
    assert (result.code, result.out) == (0, "True\nTrue\n"), result


def test_each_host_has_its_own_processors(launch, two_cores, tmp_path):
    """What a cpuset leaves an agent is what its ranks are bound within."""
    shell = tmp_path / "rsh"
    shell.write_text(SHELL % SECOND)
    shell.chmod(0o755)
    line = ("--mca", "plm_rsh_agent", shell, "--bind-to", "core", "--report-bindings")
    result = launch(*line, "--host", "other", sys.executable, "-c", SAYS)
    assert (result.code, result.out) == (0, f"0 {SECOND} 0/1 True\n"), result
    assert "rank 0 on other is bound to" in result.err
    result = launch(*line, "--host", "other:2", "true")
    assert result.code == 2, result
    text = " ".join(result.err.split())
    assert "host other: 2 rank(s) were to be bound on this host, and it has 1 cores" in text, result


def test_shared_memory_is_first_touched_by_its_owner(launch):
    """The kernel takes a page from the node of whoever first writes to it: nobody else has."""
    code = """
import os
from mpi4py import MPI
comm, size = MPI.COMM_WORLD, 4 << 20
window = MPI.Win.Allocate_shared(size, 1, comm=comm)
comm.Barrier()
def touched():
    files = {}
    for name in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{name}"
        if "ompy-region" in os.path.realpath(path):
            files[os.stat(path).st_ino] = os.stat(path)
    return sum(file.st_blocks * 512 for file in files.values() if file.st_size >= 2 * size)
before = touched()
comm.Barrier()
if comm.rank == 1:
    memoryview(window)[:] = bytes(size)
comm.Barrier()
if comm.rank == 0:
    print(before < size // 16, size <= touched() - before < size + size // 16)
window.Free()
"""
    result = launch.python(2, code)
    assert (result.code, result.out) == (0, "True True\n"), result
