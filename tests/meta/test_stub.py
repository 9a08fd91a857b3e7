"""`MPI.pyi`: it is what its tool writes, a type checker finds every name, mpi4py's names agree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forms import COMPILED
from tests.support.stub_facts import facts, inherited

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core"
STUB = CORE / "ompy" / "MPI.pyi"
pytestmark = pytest.mark.skipif(COMPILED, reason="sources are looked at")

# mpi4py's names that are another thing here, and why
DIFFERENT = {
    "__pyx_capi__": "there is no C interface",
    "BottomType.__new__": "made as any object is",
    "InPlaceType.__new__": "made as any object is",
    "BufferAutomaticType.__new__": "made as any object is",
    "Exception.__init__": "may be given a detail as well",
    "Pickle.__init__": "one signature instead of two",
    "buffer.allocate": "on the class, for subclasses; called alike",
    "buffer.fromaddress": "on the class, for subclasses; called alike",
    "buffer.frombuffer": "on the class, for subclasses; called alike",
}
COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
# every name of the module and of its classes, by the running module
PROGRAM = """
from ompy import MPI
import inspect
print(f"from {source} import MPI")
members = []
for place, name in enumerate(sorted(dir(MPI))):
    value = getattr(MPI, name)
    if name.startswith("_") or name == "annotations":
        continue
    print(f"name{place}: object = MPI.{name}")
    if not isinstance(value, type):
        continue
    used = []
    for member in sorted(dir(value)):
        if member.startswith("_") or member in dir(RuntimeError):
            continue
        found = inspect.getattr_static(value, member)
        used.append(f"one.{member}")
        if not isinstance(found, property):
            used.append(f"MPI.{name}.{member}")
    body = ", ".join(used) or "one"
    print(f"def use{place}(one: MPI.{name}) -> object:\\n    return [{body}]")
"""
# what programs write, each with what the checker has to say of it
TYPICAL = """
import mpi4py
import mpi4py.rc
import mpi4py.typing
from array import array
from typing import assert_type
from mpi4py import MPI, rc
from mpi4py.bench import ringtest
from mpi4py.futures import MPICommExecutor, MPIPoolExecutor, as_completed, collect
from mpi4py.run import set_abort_status
from mpi4py.util import dtlib, pkl5, pool, sync
from mpi4py.typing import BufSpec, Buffer

mpi4py.rc.threads = False
rc(initialize=True, thread_level="single")
mpi4py.profile("name", path=["folder"])
comm = MPI.COMM_WORLD
assert_type(comm, MPI.Intracomm)
assert_type(comm.rank, int)
data = array("d", [0.0])
comm.Send(data, dest=0)
comm.Send([data, MPI.DOUBLE], 0, tag=3)
comm.Send((data, 1, "d"), 0)
comm.Recv(data, source=MPI.ANY_SOURCE, status=MPI.Status())
comm.Allreduce(MPI.IN_PLACE, data, op=MPI.SUM)
comm.Gather(data, None, root=1)
comm.Allgatherv(data, [data, ([1], [2]), MPI.DOUBLE])
comm.Alltoallw((data, [1], [2], [MPI.INT]), [data, [1], [2], [MPI.INT]])
MPI.Request.Waitall([comm.Isend(b"x", 0), comm.irecv(source=0)])
assert_type(comm.Iprobe(), bool)
assert_type(comm.Send_init(data, 0), MPI.Prequest)
assert_type(comm.Create_cart([2, 2], periods=[True, False]).Shift(0, 1), tuple[int, int])
window = MPI.Win.Allocate(8, comm=comm)
window.Put(data, 0, [0, 1, MPI.DOUBLE])
memoryview(window)

def combine(left: MPI.memory, right: Buffer, datatype: MPI.Datatype) -> None: ...

assert_type(MPI.Op.Create(combine, commute=True), MPI.Op)
try:
    comm.Barrier()
except MPI.Exception as problem:
    set_abort_status(problem.Get_error_class() == MPI.ERR_COMM)

own = pkl5.Intracomm(comm)
assert_type(own.isend({}, dest=0), pkl5.Request)
assert_type(own.improbe(), pkl5.Message | None)
with sync.Mutex(comm=comm, recursive=True) as mutex:
    assert_type(mutex.acquire(blocking=False), bool)
assert_type(next(sync.Counter(comm=comm)), int)
assert_type(sync.Condition().wait_for(lambda: "text"), str)
assert_type(dtlib.from_numpy_dtype("i4"), MPI.Datatype)
with MPIPoolExecutor(max_workers=2, initializer=print, main=False) as executor:
    assert_type(executor.submit(len, "a").result(), int)
    assert_type(list(executor.map(len, ["a"], chunksize=2, unordered=True)), list[int])
    assert_type(collect([executor.submit(len, "a")]).result(), list[int])
with MPICommExecutor(comm, root=0) as client:
    if client is not None:
        client.bootup().shutdown(cancel_futures=True)
with pool.Pool(4) as workers:
    assert_type(workers.map(len, ["a"]), list[int])
    assert_type(workers.apply_async(len, ("a",)).get(1.5), int)
assert_type(ringtest(comm, ["-q"]), float)

async def wait(message: BufSpec) -> object:
    await comm.Isend(message, 0)
    return await comm.irecv()
"""
WRONG = """
from mpi4py import MPI
MPI.COMM_WORLD.Send(3.5, 0)
MPI.COMM_WORLD.send(1, "0")
MPI.COMM_WORLD.no_such_call()
MPI.NO_SUCH_NAME
MPI.COMM_WORLD.Split().Get_dim()
"""


def test_it_is_what_its_tool_writes() -> None:
    command = [sys.executable, "tools/package", "mpi_stub", "--check"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"run tools/package mpi_stub{done.stderr}"


def test_its_names_and_parameters_are_mpi4pys() -> None:
    lines = (ROOT / "tests" / "golden" / "mpi4py_names.txt").read_text().splitlines()
    theirs = dict(line.split(" ", 1) for line in lines)
    ours = facts(STUB.read_text())
    differing = {}
    for name, fact in theirs.items():
        if name.endswith(COMPARISONS):
            continue  # of any object: nobody calls them by name
        found = inherited(ours, name)
        if found != fact:
            differing[name] = found
    assert differing.keys() == DIFFERENT.keys(), differing


def mypy(folder: Path, *names: str) -> str:
    """What mypy says of some programs."""
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.12"]
    command += ["--config-file=", "--cache-dir", str(folder / "cache"), *names]
    found = {**os.environ, "MYPYPATH": f"{CORE / 'ompy' / 'dropin'}:{CORE}"}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=found, cwd=folder
    )
    assert not done.stderr, done.stderr
    return done.stdout


def test_a_type_checker_finds_every_name(tmp_path: Path) -> None:
    used = 0
    for source in ("ompy", "mpi4py"):
        code = f"source = {source!r}\n{PROGRAM}"
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        (tmp_path / f"names_{source}.py").write_bytes(done.stdout)
        used += done.stdout.count(b"MPI.")
    assert used > 2000
    (tmp_path / "typical.py").write_text(TYPICAL)
    (tmp_path / "wrong.py").write_text(WRONG)
    said = mypy(tmp_path, "names_ompy.py", "names_mpi4py.py", "typical.py", "wrong.py")
    found = [line.split(":")[:2] for line in said.splitlines() if ": error: " in line]
    assert found == [["wrong.py", str(line)] for line in range(3, 8)], said
