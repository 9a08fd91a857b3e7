"""Peers that compute and paths that are dead: the agents of both hosts tell them apart."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.frameworks.nic.base import EventKind
from ompy.frameworks.nic.verbs import Opcode, SendWork, State, Timing
from ompy.frameworks.paths.path_watch import INTERVAL_MS, MS, PATIENCE_MS, TIMEOUT_MS
from ompy.net.faults.fault_rules import FaultRule

from tests.support.hca_job import SECOND, Rank, run

TIMING = Timing(timeout=12, retry_count=7, rnr_retry=7, rnr_timer=12)
TRY = 4096 << TIMING.timeout  # ns: 16.8 ms
ALL_TRIES = (TIMING.retry_count + 1) * TRY
CUT = 1  # s; when faults begin
REACH = "did not reach each other"


def until(rank: Rank, seconds: float) -> None:
    """Go on answering up to a moment."""
    left = round(seconds * SECOND) - rank.engine.now()
    assert left >= 0
    rank.wait(lambda: False, left / SECOND)


def outcomes(rank: Rank) -> list[tuple[Opcode, str]]:
    return [(one.opcode, one.status.name) for one in rank.end.done]


@pytest.mark.parametrize("seconds", [5, 60])
@pytest.mark.parametrize("opcode", [Opcode.SEND, Opcode.RDMA_WRITE, Opcode.RDMA_READ])
def test_a_peer_that_computes_is_no_error(seconds: int, opcode: Opcode) -> None:
    """Its device cannot answer meanwhile; all tries together are over in 135 ms."""

    def program(rank: Rank) -> tuple[int, Any]:
        (pair,) = rank.connect(timing=TIMING)
        if rank.context.rank:
            for index in range(20):
                pair.post_receive(rank.end.span(1000 * index, 1000), index)
            rank.compute(seconds)
            rank.wait(lambda: False, 1)
            return 0, outcomes(rank)
        for index in range(20):
            work = rank.remote(opcode, 1000 * index, 1000, 1000 * index)
            pair.post_send(work)
        assert rank.wait(lambda: len(rank.end.done) == 20, 2 * seconds)
        assert rank.end.nic.events() == []
        return rank.engine.now(), outcomes(rank)

    job, _ = run(program)
    (took, mine), (_, theirs) = job.results  # type: ignore[attr-defined]
    assert mine == [(opcode, "SUCCESS")] * 20
    assert theirs == ([(Opcode.RECEIVE, "SUCCESS")] * 20 if opcode is Opcode.SEND else [])
    assert 0 <= took - seconds * SECOND < SECOND // 10


def test_a_busy_peer_is_asked_seldom() -> None:
    """One packet at a time, and ever more rarely."""

    def program(rank: Rank) -> int:
        (pair,) = rank.connect(timing=TIMING)
        if rank.context.rank:
            rank.compute(5)
            rank.wait(lambda: False, 1)
            return 0
        pair.post_send(rank.remote(Opcode.RDMA_WRITE, 0, 60_000, 0))
        rank.wait(lambda: bool(rank.end.done), 10)
        assert outcomes(rank) == [(Opcode.RDMA_WRITE, "SUCCESS")]
        return pair.requester.round  # type: ignore[attr-defined]

    job, _ = run(program)
    assert 5 < job.results[0] < 5 * SECOND // TRY // 10  # type: ignore[attr-defined]


def write_into(
    *rules: FaultRule, failover: bool = True, timing: Timing = TIMING, **parameters: object
) -> tuple[float, str, str]:
    """Write when a lasting fault begins.

    Returns:
        How many ms after its begin it completed, how, and why.
    """

    def program(rank: Rank) -> Any:
        rank.end.nic.failover = failover
        (pair,) = rank.connect(timing=timing)
        until(rank, CUT)
        if rank.context.rank:
            until(rank, CUT + 10)
            return None
        pair.post_send(rank.remote(Opcode.RDMA_WRITE, 0, 5000, 0))
        pair.post_receive(rank.end.span(0, 10), 0)
        rank.wait(lambda: bool(rank.end.done), 9)
        done = rank.end.done[0]
        after = (rank.engine.now() - CUT * SECOND) / MS
        if done.status.name != "SUCCESS":
            assert pair.state is State.ERR
            assert outcomes(rank)[1:] == [(Opcode.RECEIVE, "WR_FLUSH_ERR")]
        return after, done.status.name, done.detail

    job, counter = run(program, rules=rules, parameters=parameters)
    counter.require("rules")
    result: tuple[float, str, str] = job.results[0]  # type: ignore[attr-defined]
    return result


def hole(lasts: float, **more: Any) -> FaultRule:
    """A black hole of so many ms."""
    begin = CUT * SECOND
    return FaultRule("black_hole", since=begin, until=begin + round(lasts * MS), **more)


@pytest.mark.parametrize(("failover", "probes"), [(True, TIMEOUT_MS), (False, PATIENCE_MS)])
@pytest.mark.parametrize("ranks", [(0,), (1,), ()], ids=["there", "back", "both"])
def test_a_black_hole(ranks: tuple[int, ...], failover: bool, probes: int) -> None:
    """The verdict comes so long after the first timeout, when the tries are over already."""
    after, status, detail = write_into(hole(8000, ranks=ranks), failover=failover)
    assert status == "RETRY_EXC_ERR"
    assert 0 <= after - (TRY / MS + probes) < 2
    assert REACH in detail


def test_more_tries_than_the_probes_need() -> None:
    """Verbs promise so many, and the last one ends them."""
    timing = TIMING._replace(timeout=15)
    after, status, _ = write_into(hole(9000), timing=timing)
    assert status == "RETRY_EXC_ERR"
    assert 0 <= after - 8 * 8 * TRY / MS < 2


@pytest.mark.parametrize("what", ["nic_gone", "link_down"])
def test_the_peers_nic(what: str) -> None:
    """It says nothing to us: only silence does."""
    after, status, detail = write_into(FaultRule(what, ranks=(1,), since=CUT * SECOND))
    assert status == "RETRY_EXC_ERR"
    assert 0 <= after - (TRY / MS + TIMEOUT_MS) < 2
    assert REACH in detail


@pytest.mark.parametrize("lasts", [30, 200, TRY // MS + TIMEOUT_MS - INTERVAL_MS - 2])
def test_a_hole_that_closes_in_time(lasts: float) -> None:
    """Though all tries were over: nobody knew whether the peer computed."""
    after, status, _ = write_into(hole(lasts))
    assert status == "SUCCESS"
    assert lasts < after < lasts + 40 * TRY / MS


def test_nobody_is_asked_when_that_is_off() -> None:
    """Then the tries alone end it."""
    after, status, _ = write_into(hole(8000), btl_base_probe_timeout_ms=0)
    assert status == "RETRY_EXC_ERR"
    assert 0 <= after - ALL_TRIES / MS < 2


def test_no_timeout_tries_for_ever() -> None:
    """Code 0 is for ever: nothing is sent again, and nobody is asked."""

    def program(rank: Rank) -> list[Any]:
        (pair,) = rank.connect(timing=TIMING._replace(timeout=0))
        until(rank, CUT)
        if not rank.context.rank:
            pair.post_send(rank.remote(Opcode.RDMA_WRITE, 0, 8, 0))
        until(rank, CUT + 20)
        return outcomes(rank)

    job, counter = run(program, rules=[hole(9000)])
    counter.require("rules")
    assert job.results == [[], []]  # type: ignore[attr-defined]


def test_a_peer_that_has_ended() -> None:
    """Its agent says so: no path has to be tried for that, but the tries have to be over."""

    def program(rank: Rank) -> Any:
        (pair,) = rank.connect(timing=TIMING)
        if rank.context.rank:
            return None
        rank.compute(CUT)
        pair.post_send(rank.remote(Opcode.RDMA_WRITE, 0, 8, 0))
        rank.wait(lambda: bool(rank.end.done), 9)
        return rank.engine.now() - CUT * SECOND, outcomes(rank), rank.end.done[0].detail

    job, _ = run(program)
    took, done, detail = job.results[0]  # type: ignore[attr-defined]
    assert done == [(Opcode.RDMA_WRITE, "RETRY_EXC_ERR")]
    assert 0 <= took - ALL_TRIES < 2 * MS
    assert "has ended" in detail


def test_own_link_down() -> None:
    """The device says so at once, its queue pairs fail when their tries are over, then it heals."""

    def program(rank: Rank) -> Any:
        rank.end.nic.failover = True
        (pair,) = rank.connect(timing=TIMING)
        until(rank, CUT)
        if rank.context.rank:
            until(rank, CUT + 5)
            return None
        pair.post_send(rank.remote(Opcode.RDMA_WRITE, 0, 8, 0))
        nic = rank.end.nic
        rank.wait(lambda: nic.eventful, 4)  # until the packet leaves the device
        down = [(event.kind, rank.engine.now()) for event in nic.events()]
        rank.wait(lambda: bool(rank.end.done), 4)
        failed = rank.engine.now()
        rank.wait(lambda: nic.eventful, 4)
        up = [(event.kind, rank.engine.now()) for event in nic.events()]
        return down, failed, outcomes(rank), up

    rule = FaultRule("link_down", ranks=(0,), since=CUT * SECOND, until=3 * CUT * SECOND)
    job, counter = run(program, rules=[rule])
    counter.require("rules")
    ((kind, at),), failed, done, ((healed, later),) = job.results[0]  # type: ignore[attr-defined]
    assert kind is EventKind.LINK_DOWN
    assert 0 <= at - CUT * SECOND < 1_000
    assert done == [(Opcode.RDMA_WRITE, "RETRY_EXC_ERR")]
    assert failed - at < (TIMEOUT_MS + 20) * MS
    assert healed is EventKind.LINK_UP
    assert 0 <= later - 3 * CUT * SECOND < 110 * MS


def test_two_queue_pairs_share_one_question() -> None:
    """And a doubt ends when the peer answers."""

    def program(rank: Rank) -> Any:
        pairs = rank.connect(2, timing=TIMING)
        nic = rank.end.nic
        if rank.context.rank:
            rank.compute(CUT)
            rank.wait(lambda: False, 1)
            return None
        for pair in pairs:
            pair.post_send(
                SendWork(
                    Opcode.RDMA_WRITE,
                    [rank.end.span(0, 8)],
                    0,
                    remote_address=rank.address,
                    rkey=rank.rkey,
                )
            )
        asked = []
        watch = rank.context.paths.watch

        def counted(*arguments: Any, **more: Any) -> Any:
            asked.append(arguments)
            return watch(*arguments, **more)

        rank.context.paths.watch = counted  # type: ignore[method-assign]
        rank.wait(lambda: len(rank.end.done) == 2, 4)
        assert len(rank.end.done) == 2
        return len(asked), len(nic.doubts._open)  # type: ignore[attr-defined]

    job, _ = run(program)
    assert job.results[0] == (1, 0)  # type: ignore[attr-defined]


def test_a_receiver_that_is_not_ready_is_no_silent_one() -> None:
    """RNR tries for ever are for ever, with the path cut in between for a while."""

    def program(rank: Rank) -> Any:
        (pair,) = rank.connect(timing=TIMING._replace(rnr_timer=20))  # 10 ms
        if rank.context.rank:
            until(rank, 4)
            pair.post_receive(rank.end.span(0, 100), "late")
            until(rank, 6)
            return outcomes(rank)
        until(rank, CUT - 0.1)
        pair.post_send(SendWork(Opcode.SEND, [rank.end.span(0, 8)], 0))
        until(rank, 6)
        return outcomes(rank)

    job, counter = run(program, rules=[hole(200)])
    counter.require("rules")
    assert job.results == [[(Opcode.SEND, "SUCCESS")], [(Opcode.RECEIVE, "SUCCESS")]]  # type: ignore[attr-defined]
