"""Windows of whole programs in the virtual world."""

from __future__ import annotations

import pytest

from tests.proc.test_sim import BEGIN, Sim, sim

__all__ = ["sim"]  # a fixture

pytestmark = pytest.mark.proc

EVERYTHING = (
    BEGIN
    + """
from array import array
rank, size = comm.rank, comm.size
after, before = (rank + 1) % size, (rank - 1) % size
memory = array("q", [0] * 4)
win = MPI.Win.Create(memory, 8, comm=comm)
win.Fence()
win.Put(array("q", [rank + 1]), after)
win.Accumulate(array("q", [1]), 0, 1)
win.Fence()
assert memory[0] == before + 1
assert rank or memory[1] == size
was = array("q", [-1])
win.Lock(0)
win.Fetch_and_op(array("q", [1]), was, 0, 2)
win.Unlock(0)
assert sorted(comm.allgather(was[0])) == list(range(size))
group = win.Get_group()
win.Post(group.Incl([before]))
win.Start(group.Incl([after]))
win.Put(array("q", [-rank]), after, 3)
win.Complete()
win.Wait()
assert memory[3] == -before
win.Free()
large = array("d", range(20_000))
room = array("d", [0.0]) * len(large)
win = MPI.Win.Allocate(8 * len(large), 8, comm=comm)
win.Fence()
win.Put(large, after)
win.Fence()
win.Get(room, after)
win.Fence()
assert room == large
win.Free()
win = MPI.Win.Create_dynamic(comm=comm)
win.Attach(memory)
places = comm.allgather(MPI.Get_address(memory))
win.Lock(after)
win.Put(array("q", [7]), after, places[after])
win.Unlock(after)
comm.Barrier()
assert memory[0] == 7
win.Detach(memory)
win.Free()
try:
    MPI.Win.Allocate_shared(80, 8, comm=comm)
except MPI.Exception as problem:
    assert problem.Get_error_class() == MPI.ERR_RMA_SHARED
    print(problem)
"""
)


@pytest.mark.nightly
@pytest.mark.parametrize("btl", ["usnic", "openib"])
def test_windows_work_and_what_is_shared_is_refused(sim: Sim, btl: str) -> None:
    fault = ["--fault", "drop:probability=0.05", "--fault-strict"] if btl == "usnic" else []
    done = sim(EVERYTHING, "-n", 3, "--mca", "btl", f"self,{btl}", *fault)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("they are on 3 hosts") == 3
