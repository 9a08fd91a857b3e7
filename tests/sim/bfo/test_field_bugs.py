"""What went wrong in comparable systems (public threads), one by one.

freenet/freenet-core#4694, kvcache-ai/Mooncake#2960, NVIDIA/nccl#2157 and ROCm/rocm-systems#6145
on GitHub; the tests say which.

Here over bfo as a whole. What the single BTLs have of it: a link announced too early and reconnect
storms in `tests/sim/tcp/test_failover.py`, the machine that holds back what flaps in
`tests/unit/test_healing.py`, agents that were stopped in `tests/unit/runtime/test_probes.py`;
with real cables `tests/netns/test_rails.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from ompy.frameworks.btl import (
    BAD_PARAM,
    ERROR_FATAL,
    NOT_AVAILABLE,
    RESOURCE_BUSY,
    UNREACHABLE,
)
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.verbs import Completion, Opcode, Status
from ompy.frameworks.pml import STANDARD
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.btl.openib.queues.completions import CompletionRoom

from tests.sim.ob1.programs import exchange, one_message
from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.failing_rails import US, FailingRail, Fault, failing_world
from tests.support.fault_matrix import PROTOCOLS
from tests.support.scripted_world import faults_of
from tests.support.worlds import registry

STREAM = FailingRail(flags=0)
MS, SECOND = 1_000_000, 1_000_000_000
TWO = (Rail("rail0"), Rail("rail1", latency=30_000))
BTLS = ("tcp", "openib")


# -- freenet#4694: a test of faults that are never injected is green


@pytest.mark.parametrize(
    "fault",
    [
        Fault("lost", "RGET"),  # the protocol has no such fragment
        Fault("lost", "MATCH", nth=2),  # it has only one
        Fault("lost", nth=1_000),
    ],
    ids=str,
)
def test_false_green_a_fault_that_never_strikes_is_a_failure(fault: Fault) -> None:
    with pytest.raises(AssertionError, match="never struck"):
        failing_world([one_message(900)] * 2, [STREAM] * 2, [fault])


def test_false_green_a_fault_of_a_spared_rail_is_none() -> None:
    with pytest.raises(AssertionError, match="never struck"):
        failing_world([one_message(900)] * 2, [STREAM], [Fault("lost")], immortal=(0,))


# -- detectors that take a busy peer for a dead one


def job_on_rails(
    program: Any, btl: str, *rules: FaultRule, ranks: int = 2, seed: int = 0
) -> tuple[VirtualJob, list[RankProcess]]:
    """Every rank on a host of its own, with two rails and this fault script."""
    processes: list[RankProcess] = []

    def bring_up(context: RankContext, parts: Any) -> RankProcess:
        context.network.install(faults_of(context, rules))
        processes.append(RankProcess(context, parts))
        return processes[-1]

    job = VirtualJob(
        ranks,
        registry(pml="bfo", btl=f"self,{btl}"),
        seed=seed,
        rails=TWO,
        hosts=range(ranks),
        bring_up=bring_up,
    )
    job.run(program)
    return job, processes


def rail_events(processes: Sequence[Any]) -> list[Any]:
    return [event for process in processes for event in process.context.rail_events]


def in_mid_transfer(size: int, seconds: float) -> Any:
    """Rank 0 sends; rank 1 takes a part of it, and then does something else for a while."""

    def program(process: RankProcess) -> None:
        comm, pml = world(process), process.pml
        engine: Any = process.context.engine
        process.context.wireup.fence()
        if comm.rank == 0:
            memory, room = buffer(8)
            pml.wait(comm, pml.isend(comm, send(pattern(size, 1)), 1, 5, STANDARD))
            pml.recv(comm, room, 1, 6)
            return
        memory, room = buffer(size)
        request = pml.irecv(comm, room, 0, 5)
        assert not engine.wait_until(lambda: request.complete, MS), "it was over before it slept"
        engine.spend(round(seconds * SECOND))
        pml.wait(comm, request)
        assert bytes(memory) == pattern(size, 1)
        pml.send(comm, send(bytes(8)), 0, 6, STANDARD)

    return program


@pytest.mark.parametrize("btl", BTLS)
def test_false_positive_a_peer_that_computes_in_mid_transfer(btl: str) -> None:
    job, processes = job_on_rails(in_mid_transfer(5_000_000, 5), btl)
    assert not rail_events(processes)
    assert job.scheduler.time > 5 * SECOND


@pytest.mark.parametrize("btl", BTLS)
def test_false_positive_the_same_detector_finds_a_rail_that_is_dead(btl: str) -> None:
    """Or else nothing is shown by its silence about busy peers."""
    hole = FaultRule("black_hole", rails=("rail0",), since=2 * MS)
    _, processes = job_on_rails(in_mid_transfer(5_000_000, 5), btl, hole)
    assert {event.rank for event in rail_events(processes)} == {0, 1}


@pytest.mark.parametrize("btl", BTLS)
def test_false_positive_many_ranks_on_one_core(btl: str) -> None:
    """Each has the core for 100 ms and then waits for its next turn, as with too many of them."""
    ranks = 4

    def program(process: RankProcess) -> None:
        comm, engine = world(process), process.context.engine
        for turn in range(2):
            engine.spend(100 * MS * (1 + (comm.rank + turn) % ranks))  # type: ignore[attr-defined]
            exchange(process)

    _, processes = job_on_rails(program, btl, ranks=ranks)
    assert not rail_events(processes)


# -- Mooncake#2960: a link that is announced before it carries packets


def with_rests(size: int, mode: int) -> Any:
    """Three messages, with time between them in which rails heal."""
    program = one_message(size, mode=mode)

    def several(process: Any) -> None:
        for _ in range(3):
            program(process)
            process.context.engine.wait_until(lambda: False, 200 * US)

    return several


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_link_up_too_early_what_is_sent_over_it_is_not_lost(protocol: str) -> None:
    """It is said to be up at once, each time, and what goes over it then is lost again."""
    plain, size, mode, _ = PROTOCOLS[protocol]
    early = replace(plain, heal=1 * US, notice=5 * US, other_end=0)
    slow = replace(plain, latency=50, bandwidth=100)
    program = with_rests(size, mode)
    faults = [Fault("lost", nth=nth) for nth in (1, 2, 3)]
    job = failing_world([program] * 2, [early, slow], faults, immortal=(1,))
    assert all(event.healed for event in rail_events(job.processes))


# -- nccl#2157: one end has recovered, and the other one does not know yet that anything is wrong


@pytest.mark.parametrize("other_end", [1 * US, 40 * US, 400 * US, 4_000 * US])
@pytest.mark.parametrize("protocol", ["eager immediate", "direct put", "direct get", "buffered"])
def test_recovery_skew(protocol: str, other_end: int) -> None:
    """Who noticed first uses the rail again before, while or after the other end gives it up."""
    plain, size, mode, _ = PROTOCOLS[protocol]
    program = with_rests(size, mode)
    for heal, first in product((0, 30 * US), ("sender", "receiver")):
        # healed before anything is done about what failed, or when that is under way
        rail = replace(plain, heal=heal or 1, other_end=other_end, notice=heal or 1)
        rails = [rail, rail, replace(plain, latency=20)]
        transfers = failing_world([program] * 2, rails, immortal=(2,)).net.counts[""]
        places = 1, 1 + transfers // 2
        faults = [
            Fault(what, nth=nth, first=first)
            for what, nth in zip(("lost", "error"), places, strict=True)
        ]
        job = failing_world([program] * 2, rails, faults, immortal=(2,))
        told = {event.rank for event in rail_events(job.processes) if event.healed}
        assert 0 in told


# -- rocm-systems#6145: an error code that says "this path" is taken for "this job"


@pytest.mark.parametrize("what", ["lost", "error", "refused"])
@pytest.mark.parametrize("status", [-1, RESOURCE_BUSY, BAD_PARAM, UNREACHABLE, NOT_AVAILABLE, -99])
def test_error_code_no_status_of_a_btl_ends_the_job(status: int, what: str) -> None:
    for protocol, (plain, size, mode, fragments) in PROTOCOLS.items():
        rail = replace(plain, status=status)
        for fragment in fragments:
            program = one_message(size, mode=mode)
            job = failing_world([program] * 2, [rail] * 3, [Fault(what, fragment)])
            assert job.net.delivered.total() == 1, protocol


@pytest.mark.parametrize("gone", [False, True])
def test_error_code_a_fatal_path_is_not_a_fatal_job(gone: bool) -> None:
    """A BTL that fails over may say "fatal" of a path or of its whole interface."""
    rail = FailingRail(flags=0, severity=ERROR_FATAL)
    job = failing_world([one_message(9_000)] * 2, [rail] * 2, [Fault("lost", "FRAG", 2, gone=gone)])
    assert rail_events(job.processes)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.SUCCESS])
def test_error_code_no_status_of_an_adapter_ends_the_job(
    status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    """openib: one completion says so, early in a connection and late, over one of two.

    Of what was posted to be sent: a receive that fails has not been acknowledged to the peer.
    """
    for nth in (3, 15):
        seen = 0
        poll = CompletionRoom.poll

        def told(self: CompletionRoom, most: int, poll: Any = poll, nth: int = nth) -> Any:
            nonlocal seen
            found: list[Completion] = poll(self, most)
            for index, one in enumerate(found):
                if one.status is Status.SUCCESS and one.opcode is not Opcode.RECEIVE:
                    seen += 1
                    if seen == nth:
                        found[index] = one._replace(status=status, detail="planted")
            return found

        with monkeypatch.context() as patch:
            patch.setattr(CompletionRoom, "poll", told)
            job_on_rails(exchange, "openib", seed=nth)
        assert seen > nth, "it was never said"
