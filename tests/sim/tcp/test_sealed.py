"""Bytes that are altered on the way, with right checksums: seen through the seal, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.engine.virtual_engine import RankFailed
from ompy.frameworks.btl_base.sealing import POLICIES
from ompy.frameworks.pml import STANDARD
from ompy.net.faults.scripted import ScriptedFaults
from ompy.net.seals.sealed import SealedStream
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.faults.fault_script import read_faults
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.p2p import programs
from tests.support.effort import effort
from tests.support.scripted_world import install
from tests.support.worlds import registry
from tests.unit.net.test_records import CRYPTOGRAPHY

SIZES = (8, 1_000, 40_000, 300_000)
AFTER = 14  # arbitrary: that write of a side is no part of a handshake, which would be tried again
ONE, TWO = (Rail("rail0"),), (Rail("rail0"), Rail("rail1"))
SEALS = [
    "auto",
    pytest.param("encrypt", marks=pytest.mark.skipif(not CRYPTOGRAPHY, reason="no cryptography")),
]


def world(
    seal: str, script: str, *, pml: str, rails: tuple[Rail, ...], seed: int = 0
) -> tuple[VirtualJob, list[ScriptedFaults]]:
    """Two ranks on two hosts."""
    settings = registry(pml=pml, btl="self,tcp", btl_base_seal=seal)
    made = VirtualJob(2, settings, seed=seed, rails=rails, hosts=[0, 1])
    return made, install(made, read_faults([script], 2) if script else [], seed=seed)


SEEN: list[int] = []  # sizes of messages that came with other bytes


def turns(process: Any) -> list[int]:
    """Messages of every protocol, both ways. The sizes of those that came with other bytes."""
    comm, pml = programs.world(process), process.pml
    other, wrong = 1 - comm.rank, []
    for size in SIZES * 2:
        memory, room = programs.buffer(size)
        there = pml.irecv(comm, room, other, size)
        data = programs.send(programs.pattern(size, comm.rank))
        out = pml.isend(comm, data, other, size, STANDARD)
        pml.wait(comm, there)
        pml.wait(comm, out)
        if bytes(memory) != programs.pattern(size, other):
            wrong.append(size)
            SEEN.append(size)
    return wrong


@pytest.mark.parametrize("seal", ["none", "mac", *SEALS])
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
def test_undisturbed(seal: str, pml: str) -> None:
    for seed in range(effort(1)):
        made, _ = world(seal, "", pml=pml, rails=TWO, seed=seed)
        assert made.run(turns) == [[], []]


def test_without_a_seal_altered_bytes_reach_the_user() -> None:
    """What it is there for: the same injector, and nobody notices."""
    found = []
    for seed in range(40):
        made, _ = world("none", "corrupt:rank=0,mode=forged,nth=9", pml="ob1", rails=ONE, seed=seed)
        try:
            found.append(made.run(turns)[1])
        except Exception:  # a header was hit: anything may come of that
            continue
    assert any(found)


@pytest.mark.parametrize("seal", SEALS)
def test_ob1_ends_with_an_error_that_says_why(seal: str) -> None:
    """Whichever byte of whichever frame it is; and no message that has come has other bytes."""
    causes = []
    SEEN.clear()
    for seed in range(max(6, effort(6))):
        script = f"corrupt:rank=0,mode=forged,nth={AFTER + seed % 9}"
        made, faults = world(seal, script, pml="ob1", rails=ONE, seed=seed)
        with pytest.raises(RankFailed) as failed:
            made.run(turns)
        cause = failed.value.__cause__
        assert isinstance(cause, MPIError), cause
        assert cause.code == ERR_PROC_FAILED
        causes.append(str(cause))
        assert sum(faults[0].delivered) == 1
    assert not SEEN
    # where the other rank has failed first it has seen the end of the connection
    assert all("has sealed" in cause or "closed" in cause for cause in causes), causes
    assert any("not what the other end has sealed" in cause for cause in causes), causes


@pytest.mark.parametrize("seal", SEALS)
def test_a_handshake_that_is_altered_is_made_again(seal: str) -> None:
    for seed in range(effort(6)):
        nth = 1 + seed // 2 % 3  # what comes later is no handshake any more
        script = f"corrupt:rank={seed % 2},mode=forged,nth={nth}"
        made, _ = world(seal, script, pml="ob1", rails=ONE, seed=seed)
        assert made.run(turns) == [[], []]


@pytest.mark.parametrize("seal", SEALS)
def test_bfo_goes_on_over_the_other_rail_and_heals(seal: str) -> None:
    reasons: list[str] = []
    for seed in range(effort(6)):
        reasons.clear()
        script = f"corrupt:rank={seed % 2},rail=rail0,mode=forged,nth={AFTER + seed % 9}"
        made, faults = world(seal, script, pml="bfo", rails=TWO, seed=seed)

        def program(process: Any) -> list[int]:
            wrong = turns(process)
            engine = process.context.engine
            healed = lambda: all(e.healed for e in process.context.rail_events)  # noqa: E731
            engine.wait_until(healed, 5_000_000_000)
            assert healed()
            wrong += turns(process)
            reasons.extend(event.cause for event in process.context.rail_events)
            return wrong

        assert made.run(program) == [[], []]
        assert sum(sum(one.delivered) for one in faults) == 1, seed
        assert any("not what the other end has sealed" in why for why in reasons), reasons


def test_a_seal_between_hosts_and_none_within_one() -> None:
    """By default; and every other value is taken at its word."""

    def program(process: Any) -> dict[int, bool]:
        comm, pml = programs.world(process), process.pml
        others = [rank for rank in range(comm.size) if rank != comm.rank]
        rooms = [programs.buffer(8)[1] for _ in others]
        waits = [pml.irecv(comm, room, rank, 0) for rank, room in zip(others, rooms, strict=True)]
        waits += [pml.isend(comm, programs.send(bytes(8)), rank, 0, STANDARD) for rank in others]
        for request in waits:
            pml.wait(comm, request)
        (module,) = [one for one in process.context.btls if one.name == "tcp"]
        ends = module._endpoints
        return {rank: isinstance(ends[rank]._stream, SealedStream) for rank in others}

    for seal in POLICIES:
        if seal == "encrypt" and not CRYPTOGRAPHY:
            continue
        settings = registry(pml="ob1", btl="self,tcp", btl_base_seal=seal)
        made = VirtualJob(3, settings, hosts=[0, 0, 1])
        everywhere = seal in ("mac", "encrypt")
        found = made.run(program)
        assert found[0] == {1: everywhere, 2: everywhere or seal == "auto"}
        assert found[2] == dict.fromkeys((0, 1), everywhere or seal == "auto")
