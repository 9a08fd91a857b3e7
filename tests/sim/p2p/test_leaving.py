"""A rank has called MPI_Finalize: whoever waits for it gets an error, in bounded time.

Virtual worlds: every wait, over every BTL, with both PMLs. A new BTL is found by itself.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from ompy.data.constants import ANY_SOURCE
from ompy.data.convertor import ContiguousConvertor
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.frameworks.btl import BtlComponent
from ompy.frameworks.pml import STANDARD, PmlComponent, PmlWrapperComponent
from ompy.mpi.communicators.intercomm import Intercomm
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.windows.windows import Win
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.coll.every_call import every_call
from tests.sim.p2p.programs import world
from tests.support import leaving_waits
from tests.support.effort import THOROUGH
from tests.support.leaving_cells import VIRTUAL_WAYS, Cell, cells, run_virtual
from tests.support.worlds import registry, virtual

PATIENCE = 50  # ms of virtual time
ASIDE = {"self"}  # reaches no other rank


def names(framework: str, base: type, *but: type) -> list[str]:
    """The components of a framework that this repository has."""
    found = [record.component for record in registry().load(framework)]
    ours = [one for one in found if type(one).__module__.startswith("ompy_components.")]
    return [one.name for one in ours if isinstance(one, base) and not isinstance(one, but)]


def settings(btl: str, pml: str) -> dict[str, object]:
    return {"btl": f"self,{btl}", "pml": pml, f"pml_{pml}_leave_patience_ms": PATIENCE}


# direct has no wire and no departures: its world matches (tests/proc/test_sim_explore.py)
PMLS = [name for name in names("pml", PmlComponent, PmlWrapperComponent) if name != "direct"]
BTLS = [name for name in names("btl", BtlComponent) if name not in ASIDE]
CHOSEN = slice(None, None, 59 if THOROUGH else 997)  # all of them: tools/sweep leaving_matrix


@pytest.mark.parametrize("cell", cells(BTLS, PMLS)[CHOSEN], ids=str)
def test_nobody_waits_in_vain(cell: Cell) -> None:
    assert run_virtual(cell) == ""


# hung before: who begins to probe last of all, and has nothing else that wakes it
LATE = [
    Cell(wait, "sm", "ob1", way, early=False, met=False)
    for wait in ("Probe any", "mprobe", "Mprobe any")
    for way in VIRTUAL_WAYS
]
# a rank with bfo that may fail waited in MPI_Finalize for those who waited for it
SILENT = [
    Cell(wait, "tcp", "bfo", "silently", early=True, met=True) for wait in ("Recv", "Barrier")
]
# the lock of a rank that finalizes and lives on
HELD = [
    Cell(f"Win.Allocate Lock{which}", "sm", "ob1", "stays", early=early, met=True)
    for which in (" that it holds", " shared that it holds", " that it shares")
    for early in (True, False)
]


@pytest.mark.parametrize("cell", [*LATE, *SILENT, *HELD], ids=str)
def test_what_hung(cell: Cell) -> None:
    assert run_virtual(cell) == ""


# what needs no other rank, or asks what is here and waits for nothing
WAITS_FOR_NOBODY = """
Abort Attach Call_errhandler Cancel Cart_map Graph_map Compare Create_errhandler Create_keyval
Delete_attr Detach Free_keyval Get_attr Get_errhandler Get_group Get_info Get_name Get_parent
Get_rank Get_size Get_topology Is_inter Is_intra Set_attr Set_errhandler Set_info Set_name
Get_remote_group Get_remote_size Shared_query Sync attrs cancel f2py flavor free fromhandle fromint
group_rank group_size handle improbe iprobe is_inter is_intra is_topo model py2f toint remote_group
remote_size tomemory topology Ack_failed Get_failed Is_revoked Revoke
"""
# what waits for processes of other worlds (tests/proc/launch/test_spawn.py), and Idup by its names
TRIED_ELSEWHERE = "Accept Connect Join Spawn Spawn_multiple Idup_with_info"


def test_whatever_waits_is_in_the_matrix() -> None:
    """Every call of the API waits for nobody, is not there, or is one of the waits."""
    tried = set(re.findall(r"\w+", f"{inspect.getsource(leaving_waits)} {' '.join(every_call())}"))
    found = set()
    for kind in (Intracomm, Intercomm, Win, Request):
        for name in dir(kind):
            there = "Not available" not in str(getattr(kind, name).__doc__)
            if there and name[0] != "_" and name not in tried:
                found.add(name)
    assert found == set(f"{WAITS_FOR_NOBODY} {TRIED_ELSEWHERE}".split())


def outcome(call: Callable[[], object]) -> int:
    try:
        call()
    except MPIError as problem:
        return problem.code
    return 0


def data(size: int = 8) -> ContiguousConvertor:
    return ContiguousConvertor(memoryview(bytearray(size)))


def test_who_sends_to_itself_may_go_on_doing_so() -> None:
    """All others have left; a receive for anybody is for the rank's own message."""

    def program(process: RankProcess) -> list[int]:
        comm, pml, engine = world(process), process.pml, process.context.engine
        if comm.rank:
            return []
        pml.isend(comm, data(), 0, 1, STANDARD)
        pml.recv(comm, data(), 0, 1)
        receive = pml.irecv(comm, data(), ANY_SOURCE, 2)
        engine.wait(receive, 10 * PATIENCE * 1_000_000)
        assert not receive.complete
        pml.isend(comm, data(), 0, 2, STANDARD)
        return [outcome(lambda: pml.wait(comm, receive))]

    assert virtual(2, program, **settings("sm", "ob1")).results[0] == [0]


def test_who_sends_to_itself_at_once_may_do_so_for_the_first_time() -> None:
    def program(process: RankProcess) -> list[int]:
        comm, pml, engine = world(process), process.pml, process.context.engine
        if comm.rank:
            return []
        engine.wait_until(lambda: bool(process.context.procs[1].left))
        receive = pml.irecv(comm, data(), ANY_SOURCE, 2)
        engine.progress()
        pml.isend(comm, data(), 0, 2, STANDARD)
        return [outcome(lambda: pml.wait(comm, receive))]

    assert virtual(2, program, **settings("sm", "ob1")).results[0] == [0]


@pytest.mark.parametrize("pml", PMLS)
@pytest.mark.parametrize("source", [1, ANY_SOURCE])
def test_who_looks_for_what_is_left_or_cancels_has_made_no_mistake(pml: str, source: int) -> None:
    """The other rank has left: looks say no, and a receive posted for all time is cancelled."""

    def program(process: RankProcess) -> list[object]:
        comm, pml, engine = world(process), process.pml, process.context.engine
        pml.send(comm, data(), 1 - comm.rank, 1, STANDARD)
        pml.recv(comm, data(), 1 - comm.rank, 1)
        if comm.rank:
            return []
        receive = pml.irecv(comm, data(), source, 2)
        engine.wait(receive, 10 * PATIENCE * 1_000_000)
        found = [receive.error, pml.iprobe(comm, source, 2), pml.improbe(comm, source, 2)]
        pml.cancel(receive)
        return [*found, receive.cancelled, outcome(lambda: pml.wait(comm, receive))]

    found = virtual(2, program, **settings("tcp", pml)).results[0]
    assert found == [ERR_PROC_FAILED, None, None, True, 0]


@pytest.mark.parametrize("pml", PMLS)
def test_others_go_on(pml: str) -> None:
    """Two ranks of three talk on after the third has left; ANY_SOURCE waits for both."""

    def program(process: RankProcess) -> list[int]:
        comm, pml, engine = world(process), process.pml, process.context.engine
        if comm.rank == 1:
            return []
        other = 2 - comm.rank
        found = [outcome(lambda: pml.recv(comm, data(), 1, 3))]
        receive = pml.irecv(comm, data(), ANY_SOURCE, 4)
        engine.wait(receive, 5 * PATIENCE * 1_000_000)
        found.append(receive.complete)
        for _ in range(3):
            pml.isend(comm, data(100_000), other, 5, STANDARD)
            found.append(outcome(lambda: pml.recv(comm, data(100_000), other, 5)))
        pml.isend(comm, data(), other, 4, STANDARD)
        found.append(outcome(lambda: pml.wait(comm, receive)))
        return found

    job = virtual(3, program, **settings("sm", pml))
    assert job.results == [[ERR_PROC_FAILED, False, 0, 0, 0, 0], [], job.results[0]]


@pytest.mark.parametrize("late", [1, 10_000_000_000])
def test_messages_in_a_communicator_that_its_sender_has_freed(late: int) -> None:
    """What was sent before is received, the next receive fails; the number is not taken over."""

    def program(process: RankProcess) -> list[int]:
        comm, pml = world(process), process.pml
        made = process.communicator(7, process.context.procs, "freed")
        if comm.rank == 1:
            for _ in range(3):
                pml.isend(made, data(), 0, 1, STANDARD)
            process.release(made)
            return []
        return [outcome(lambda: pml.recv(made, data(), 1, 1)) for _ in range(4)]

    job = VirtualJob(2, registry(**settings("tcp", "ob1")), seed=1)
    job.news_after = lambda: late
    assert job.run(program)[0] == [0, 0, 0, ERR_PROC_FAILED]


def test_a_rank_that_begins_late_hears_of_those_that_have_left() -> None:
    def program(process: RankProcess) -> Any:
        comm, pml = world(process), process.pml
        return outcome(lambda: pml.recv(comm, data(), 1, 1)) if comm.rank == 0 else None

    assert virtual(2, program, seed=3, **settings("tcp", "ob1")).results[0] == ERR_PROC_FAILED
