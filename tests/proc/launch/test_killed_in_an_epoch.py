"""kill -9 of a rank whose window others are waiting in: they get an error, the job ends, no file
is left. Each survivor waits in another way; all handle SIGTERM, so that they live to see it.
"""

import json

import pytest

from tests.proc.launch.conftest import PATIENT
from tests.support.effort import THOROUGH
from tests.support.libfabric_devices import needs_libfabric

pytestmark = pytest.mark.proc

CASES = ["lock", "flush", "fence", "post", "complete"]
ERROR_AFTER = 60  # s; arbitrary: the news come in milliseconds, and are believed after 5 s

CREATED = 'MPI.Win.Create(array("i", [0] * 4096), 4, comm=comm)'
ALLOCATED = "MPI.Win.Allocate(4096 * 4, 4, comm=comm)"
IN_SHARED_MEMORY = ["fence", "post", "complete"]  # others succeed: a target has no part in them

PROGRAM = """
import json, os, signal, time
from array import array
from mpi4py import MPI

signal.signal(signal.SIGTERM, lambda *_: None)
comm, cases = MPI.COMM_WORLD, CASES
case, dies = (cases + ["dies"])[comm.rank], len(cases)
windows = {name: MADE for name in cases}
for win in windows.values():  # they have all met
    win.Fence()
    win.Put(array("i", [1]), (comm.rank + 1) % comm.size)
    win.Fence()
if case == "dies" and "lock" in windows:
    windows["lock"].Lock(0)
    windows["flush"].Lock(dies)
    windows["flush"].Unlock(dies)
comm.Barrier()
win = windows.get(case)
peer = comm.group.Incl([dies])
began = time.monotonic()

def waits():
    if case == "dies":
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    elif case == "lock":
        win.Lock(0)
    elif case == "flush":
        win.Lock_all()
        while True:
            win.Put(array("i", [1] * 1000), dies)
            win.Accumulate(array("i", [1] * 4), dies)
            win.Flush(dies)
    elif case == "fence":
        win.Fence()
    elif case == "post":
        win.Start(peer)
        win.Put(array("i", [1]), dies)
        win.Complete()
    elif case == "complete":
        win.Post(peer)
        win.Wait()

code = 0
try:
    waits()
except MPI.Exception as problem:
    code = problem.Get_error_class()
print(json.dumps([case, code == MPI.ERR_PROC_FAILED, code, time.monotonic() - began]), flush=True)
time.sleep(1)  # so that the agent has seen the other one's end first
os.kill(os.getpid(), signal.SIGKILL)
"""


def errors(launch, osc, cases=CASES, made=CREATED, **settings):
    """What each survivor saw."""
    program = PROGRAM.replace("CASES", repr(cases)).replace("MADE", made)
    options = [*PATIENT, "--mca", "osc", osc]
    for name, value in settings.items():
        options += ["--mca", name, value]
    done = launch.python(len(cases) + 1, program, *options)
    assert done.code == 128 + 9, done
    assert f"Rank {len(cases)} was killed by signal 9" in done.err
    said = [json.loads(line) for line in done.out.splitlines()]
    assert sorted(case for case, *_ in said) == sorted(cases), done
    assert all(failed and took < ERROR_AFTER for _, failed, _, took in said), said
    return said


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"] if THOROUGH else ["self,tcp"])
def test_over_messages(launch, btl) -> None:
    errors(launch, "pt2pt", btl=btl)


@pytest.mark.nightly
def test_over_copies(launch) -> None:
    errors(launch, "rdma,pt2pt", btl="self,sm")


@pytest.mark.parametrize("words", ["0", "1"])
def test_in_shared_memory(launch, words) -> None:
    """By words of the memory: what will not come is not waited for."""
    said = errors(
        launch,
        "sm",
        IN_SHARED_MEMORY,
        ALLOCATED,
        btl="self,sm",
        osc_sm_word_locks=words,
    )
    assert len(said) == 3


def over(provider):
    return pytest.param({"btl_ofi_provider_include": provider}, id=provider, marks=needs_libfabric)


TWIN = pytest.param({"btl_ofi_nic": "ofi_emulated"}, id="emulated")
FABRICS = [over("shm"), over("tcp;ofi_rxm"), TWIN] if THOROUGH else [over("shm")]


@pytest.mark.nightly
@pytest.mark.parametrize("osc", ["rdma,pt2pt", "pt2pt"] if THOROUGH else ["rdma,pt2pt"])
@pytest.mark.parametrize("fabric", FABRICS)
def test_over_ofi(launch, osc, fabric) -> None:
    """Of `shm`, whose files have names, too: the agent removes those of who was killed."""
    errors(launch, osc, btl="self,ofi", **fabric)
