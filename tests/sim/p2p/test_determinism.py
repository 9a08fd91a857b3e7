"""One seed, one trace."""

from __future__ import annotations

import pytest
from ompy.engine.virtual_engine import Deadlock, RankFailed
from ompy.frameworks.pml import STANDARD
from ompy.net.virtual.virtual_network import Rail

from tests.sim.p2p import programs
from tests.support.worlds import virtual

RAILS = (Rail("a"), Rail("b", latency=40_000, bandwidth=1_000))


def lines(seed: int, btl: str) -> list[str]:
    job = virtual(3, programs.many_outstanding, seed=seed, rails=RAILS, trace=True, btl=btl)
    return [event.line() for event in job.events()]


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
def test_same_seed_same_trace(btl: str) -> None:
    first = lines(5, btl)
    assert len(first) > 500
    assert first == lines(5, btl)
    assert first != lines(6, btl)


def test_deadlock_is_named() -> None:
    def program(process: object) -> None:
        comm, pml = programs.world(process), process.pml
        pml.recv(comm, programs.buffer(1)[1], 1 - comm.rank, 0)

    waits = "rank 0 waits for receive from rank 1 with tag 0 in .*; rank 1 waits for .*seed 3"
    with pytest.raises(Deadlock, match=waits) as caught:
        virtual(2, program, seed=3, btl="self,sm")
    assert list(caught.value.waits) == [0, 1]
    assert caught.value.waits[1].startswith("receive from rank 0 with tag 0 in ")


def test_deadlock_of_sends_is_named() -> None:
    def program(process: object) -> None:
        comm, pml = programs.world(process), process.pml
        pml.send(comm, programs.buffer(1 << 20)[1], 1 - comm.rank, 7, STANDARD)

    waits = "rank 0 waits for send of 1048576 bytes with tag 7 to rank 1 on .*; rank 1 waits for "
    with pytest.raises(Deadlock, match=waits):
        virtual(2, program, seed=3, btl="self,sm")


def test_failing_rank_is_named() -> None:
    def program(process: object) -> None:
        if process.context.rank == 1:
            raise ValueError("on purpose")
        programs.ring(process)

    with pytest.raises(RankFailed, match="rank 1: ValueError: on purpose"):
        virtual(3, program, btl="self,sm")


def test_two_rails_share_a_large_message() -> None:
    job = virtual(2, programs.ring, rails=RAILS, trace=True, btl="self,tcp", seed=1)
    assert any("rails=tcp,tcp" in event.line() for event in job.events())
    connected = [e for e in job.events() if e.layer == "btl.tcp" and e.name == "CONNECTED"]
    assert len(connected) == 4, "both ranks, both rails"
