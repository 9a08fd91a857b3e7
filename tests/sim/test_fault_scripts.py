"""Fault scripts in virtual worlds: every transport hides what it can, and says the rest."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.engine.virtual_engine import RankFailed
from ompy.frameworks.pml import STANDARD, SYNCHRONOUS
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.scripted import ScriptedFaults
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.faults.fault_script import read_faults
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.p2p import programs
from tests.support.effort import THOROUGH, effort
from tests.support.worlds import registry

RANKS = 3
MS = 1_000_000
HIDDEN = (  # of datagrams; on a connection a duplicate never strikes
    "drop:probability=0.1",
    "duplicate:probability=0.2",
    "reorder:probability=0.3,delay=300us,jitter=300us",
    "corrupt:probability=0.1;corrupt:probability=0.05,mode=byte",
    "delay:delay=100us,jitter=500us",
    "rate_limit:rate=500Mbit/s,buffer=200000",
    "slow_receiver:rank=1,rate=1Gbit/s,buffer=200000",
    "black_hole:rank=1,direction=both,from=1us,until=150ms",
    "black_hole:rank=0,peer=1,nth=7,lasts=250ms",
    "drop:rank=2,direction=in,nth=1+2+3+20",
    "corrupt:probability=0.1;drop:probability=0.1;duplicate:probability=0.1;reorder:probability=0.2",
)


def job(script: str, btl: str, seed: int) -> tuple[VirtualJob, list[ScriptedFaults]]:
    """A world under a script; its clock starts with the ranks, as everywhere."""
    made = VirtualJob(RANKS, registry(btl=btl), seed=seed, rails=[Rail("rail0")])
    rules = read_faults([script], RANKS)
    faults = []
    for rank, network in enumerate(made.networks):
        engine, trace = made._board.engines[rank], made.traces[rank]
        one = ScriptedFaults(
            rules, rank, RANKS, engine=engine, network=network, trace=trace, seed=seed
        )
        network.install(one)
        faults.append(one)
    return made, faults


def both_ways(process: Any) -> None:
    """Messages of all protocols between every two ranks at once, twice, and what comes is right."""
    comm, pml = programs.world(process), process.pml
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    for size in (100, 40_000) * 2:
        rooms = {rank: programs.buffer(size) for rank in others}
        open_requests = [pml.irecv(comm, rooms[rank][1], rank, size) for rank in others]
        data = programs.pattern(size, comm.rank)
        sends = [programs.send(data) for _ in others]
        open_requests += [
            pml.isend(comm, one, rank, size, STANDARD)
            for one, rank in zip(sends, others, strict=True)
        ]
        for request in open_requests:
            pml.wait(comm, request)
        for rank, (memory, _) in rooms.items():
            assert bytes(memory) == programs.pattern(size, rank)


def delivered(faults: list[ScriptedFaults]) -> list[int]:
    return [sum(counts) for counts in zip(*(one.delivered for one in faults), strict=True)]


@pytest.mark.parametrize(
    ("script", "btl"),
    [(script, "self,usnic") for script in HIDDEN]
    + [(script, "self,tcp") for script in (HIDDEN if THOROUGH else HIDDEN[::3])],
)
def test_hidden(script: str, btl: str) -> None:
    for seed in range(effort(1)):
        world, faults = job(script, btl, seed)
        world.run(both_ways)
        for rule, count in zip(faults[0].rules, delivered(faults), strict=True):
            assert bool(count) is (rule.what != "duplicate" or btl == "self,usnic"), (rule, seed)


@pytest.mark.parametrize("btl", ["self,usnic", "self,tcp"])
@pytest.mark.parametrize(
    "script",
    [
        "link_down:rank=1,nth=5",
        "nic_gone:rank=1,nth=5",
        "nic_gone:rank=1",  # there is no connection yet, and there will be none
        "nic_gone:rank=0,from=30us",
        pytest.param("black_hole:rank=1,nth=5,gives_up=10ms", id="timed out"),
    ],
)
def test_told(script: str, btl: str) -> None:
    """What cannot be hidden is an MPI error at some rank, in bounded time."""
    if "gives_up" in script and btl == "self,usnic":
        pytest.skip("usnic never gives up a process that lives, unless it is told to")
    world, faults = job(script, btl, seed=1)
    with pytest.raises(RankFailed) as caught:
        world.run(both_ways)
    assert isinstance(caught.value.__cause__, MPIError)
    assert caught.value.__cause__.code == ERR_PROC_FAILED
    assert sum(delivered(faults)) >= 1
    assert world.scheduler.time < 15_000 * MS, "tcp tries to connect for 14 s"


@pytest.mark.parametrize("nth", range(1, effort(8) + 1))
def test_a_nic_that_goes_at_any_packet(nth: int) -> None:
    """Whatever the module was about to do with it, the program gets an MPI error."""
    world, faults = job(f"nic_gone:rank=1,nth={nth}", "self,usnic", seed=1)
    with pytest.raises(RankFailed) as caught:
        world.run(programs.growing)
    assert isinstance(caught.value.__cause__, MPIError)
    assert sum(delivered(faults)) >= 1


@pytest.mark.parametrize("btl", ["self,usnic", "self,tcp"])
def test_one_seed_one_trace(btl: str) -> None:
    def run(seed: int) -> tuple[list[Any], list[int]]:
        world, faults = job("drop:probability=0.1;reorder:probability=0.2", btl, seed)
        world.run(both_ways, trace=True)
        return world.events(), delivered(faults)

    first = run(5)
    assert first == run(5)
    assert first[0] != run(6)[0]
    assert any(event.layer == "net.faults" for event in first[0])


def test_a_message_is_counted_by_the_rank() -> None:
    """Byte 5000 of the second message is in the packets that follow its begin."""
    rule = FaultRule("drop", ranks=(0,), peers=(1,), message=2, byte=5000)
    world, faults = job("drop:rank=0,peer=1,message=2,byte=5000", "self,usnic", 0)
    assert faults[0].rules[0]._replace(origin="", text="", buffer=0, gives_up=-1) == rule
    faults[0].record = True
    before: list[int] = []

    def program(process: Any) -> None:
        comm, pml = programs.world(process), process.pml
        for number in range(3):
            if comm.rank == 0:
                faults[0].message_begins(1)
                flow = faults[0].flow(1, "rail0")
                before.append(flow.count)
                pml.wait(comm, pml.isend(comm, programs.send(bytes(9000)), 1, number, SYNCHRONOUS))
            elif comm.rank == 1:
                _, room = programs.buffer(9000)
                pml.wait(comm, pml.irecv(comm, room, 0, number))

    world.run(program)
    (strike,) = faults[0].injections
    assert before[1] < strike.nth <= before[2]
    assert strike.nth - before[1] in {4, 5}, "1472 bytes a packet"
