"""Windows of real ranks whose puts, gets and atomics are to be those of a BTL: how many were."""

from __future__ import annotations

from array import array
from collections import Counter

from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.windows.windows import Win
from ompy.runtime.ranks.process import RankProcess
from ompy_components.osc.rdma.changes import Changing
from ompy_components.osc.rdma.transfers import Transfer, Transfers

from tests.sim.osc import programs
from tests.support import window_programs

Counts = dict[str, int]
TURNS = 200


def counted(process: RankProcess) -> Counts:
    """Every promise and some random programs; what this rank began, by BTL and kind."""
    found: Counter[str] = Counter()
    begin, change = Transfers.begin_move, Changing.begin_change

    def counted_transfer(self: Transfers, transfer: Transfer, way) -> None:  # type: ignore[no-untyped-def]
        found[f"{way.module.name} {'put' if transfer.puts else 'get'}"] += 1
        begin(self, transfer, way)

    def counted_change(self: Changing, pending, what, way) -> bool:  # type: ignore[no-untyped-def]
        found[f"{way.module.name} atomic"] += 1
        return change(self, pending, what, way)

    Transfers.begin_move = counted_transfer  # type: ignore[method-assign]
    Changing.begin_change = counted_change  # type: ignore[method-assign]
    try:
        programs.everything(process)
        window_programs.seeded(process)
        window_programs.seeded_allocated(process)
    finally:
        Transfers.begin_move = begin  # type: ignore[method-assign]
        Changing.begin_change = change  # type: ignore[method-assign]
    return dict(found)


def contended(process: RankProcess) -> int:
    """All add to words of rank 0 at the same time, with and without a result: no sum is altered.

    Returns:
        How many sums rank 0 found right.
    """
    comm = world_of(process)
    memory = array("q", [0] * (2 * comm.size))
    win = Win.Create(memory, 8, comm=comm)
    one, was = array("q", [comm.rank + 1]), array("q", [0])
    win.Lock_all()
    for turn in range(TURNS):
        win.Accumulate(one, 0, comm.rank)
        win.Fetch_and_op(one, was, 0, comm.size + comm.rank)
        win.Flush(0)
        assert was[0] == turn * one[0]
    win.Unlock_all()
    comm.Barrier()
    right = [TURNS * (number % comm.size + 1) == total for number, total in enumerate(memory)]
    comm.Barrier()
    win.Free()
    return right.count(True)


def mixed(process: RankProcess) -> int:
    """Rank 0 puts, counts and gets in turn at rank 1; the last count it was told, and one."""
    comm = world_of(process)
    win = Win.Allocate(1 << 13, 8, comm=comm)
    data, back = array("q", range(500)), array("q", [0] * 500)
    one, was = array("q", [1]), array("q", [-1])
    win.Lock_all()
    if comm.rank == 0:
        for turn in range(50):  # arbitrary: the first crashed
            data[0] = turn
            win.Put(data, 1, 1)
            win.Flush(1)
            win.Fetch_and_op(one, was, 1, 0)
            win.Get(back, 1, 1)
            win.Flush(1)
            assert back == data
    win.Unlock_all()
    comm.Barrier()
    win.Free()
    return was[0] + 1
