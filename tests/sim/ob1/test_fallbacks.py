"""The receiver decides otherwise, and what happens when put, get or a registration fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ompy.data.errors import ERR_OTHER, ERR_PROC_FAILED
from ompy.frameworks.btl import GET, NOT_AVAILABLE, PUT
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess

from tests.sim.ob1.programs import exchange, one_message, protocols, steps, truncated
from tests.sim.ob1.test_protocols import EXPECTED
from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.effort import effort
from tests.support.rdma_btl import RdmaRail, rdma_world


def names(job: Any) -> list[str]:
    return [line.split()[2] for line in steps(job)]


@pytest.mark.parametrize(
    ("flags", "size"), [(PUT, 12_000), (GET, 12_000), (PUT, 30_000)], ids=["put", "get", "pipeline"]
)
def test_receive_that_is_not_contiguous(flags: int, size: int) -> None:
    job = rdma_world(2, one_message(size, scatter=True), [RdmaRail(flags=flags)], trace=True)
    candidate, decision = protocols(job)
    assert candidate in ("RDMA Direct Put", "RDMA Direct Get", "RDMA Pipeline")
    assert decision == "Send/Receive Pipeline"
    assert not {"WRITE", "READ", "PUT", "FIN"} & set(names(job))


def test_message_that_is_not_contiguous() -> None:
    job = rdma_world(2, one_message(12_000, gather=True), trace=True)
    assert protocols(job) == ["Send/Receive Pipeline"] * 2


def test_no_rail_for_a_pipeline() -> None:
    """The seed's candidate is RDMA Pipeline even where no BTL has RDMA; the receiver knows."""
    job = rdma_world(2, one_message(12_000), [RdmaRail(flags=0)], trace=True)
    assert protocols(job) == ["RDMA Pipeline", "Send/Receive Pipeline"]


def test_message_below_the_send_limit() -> None:
    """Two rails of which one is too small for direct RDMA: 0.33 of the bandwidth is left."""
    rails = [
        RdmaRail(flags=PUT, bandwidth=2000, min_rdma_pipeline_size=5000),
        RdmaRail(flags=PUT, bandwidth=1000, min_rdma_pipeline_size=20_000),
    ]
    job = rdma_world(2, one_message(12_000), rails, trace=True)
    assert protocols(job) == ["RDMA Pipeline", "Send/Receive Pipeline"]
    above = rdma_world(2, one_message(20_001), rails, trace=True)
    assert protocols(above) == ["RDMA Pipeline", "RDMA Pipeline"]


def test_direct_rdma_needs_half_of_the_bandwidth() -> None:
    small = RdmaRail(flags=PUT, min_rdma_pipeline_size=5000)
    large = RdmaRail(flags=PUT)
    direct = rdma_world(2, one_message(12_000), [large, small], trace=True)
    assert protocols(direct) == ["RDMA Direct Put"] * 2  # exactly half
    pinned = rdma_world(2, one_message(12_000), [small, small], trace=True, mpi_leave_pinned=1)
    assert protocols(pinned) == ["RDMA Direct Put"] * 2


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "failed"])
@pytest.mark.parametrize("size", [12_000, 100_000])
def test_put_fails(size: int, refused: bool) -> None:
    """A FIN with a negative size, and the bytes as FRAGs (reference openmpi.md 3.6.2)."""
    odds = frozenset({"put"})
    rail = RdmaRail(flags=PUT, refuse=odds) if refused else RdmaRail(flags=PUT, fail=odds)
    job = rdma_world(2, one_message(size), [rail], trace=True)
    sizes = [
        dict(event.fields)["size"]
        for event in job.events()
        if event.name == "FIN" and dict(event.fields)["side"] == "receive"
    ]
    assert sizes
    assert all(isinstance(moved, int) and moved < 0 for moved in sizes)
    assert "FRAG" in names(job)
    assert job.net.moved[0, "put"] == 0
    assert job.net.faults["refused" if refused else "failed"] == len(sizes)


def test_get_fails() -> None:
    """An ACK asks for these very bytes as FRAGs."""
    rail = RdmaRail(flags=GET, fail=frozenset({"get"}), get_limit=5000)
    job = rdma_world(2, one_message(12_000), [rail], trace=True)
    asked = [
        (dict(event.fields)["offset"], dict(event.fields)["size"])
        for event in job.events()
        if event.name == "ACK" and dict(event.fields)["side"] == "receive"
    ]
    assert asked == [(0, 5000), (5000, 5000), (10_000, 2000)]
    assert job.net.moved[0, "get"] == 0


def test_get_not_available_becomes_put() -> None:
    rail = RdmaRail(
        flags=PUT | GET, refuse=frozenset({"get"}), refuse_with=NOT_AVAILABLE, put_limit=5000
    )
    job = rdma_world(2, one_message(12_000), [rail], trace=True)
    assert names(job)[0] == "RGET"
    assert names(job).count("WRITE") == 3
    assert job.net.moved == {(0, "put"): 12_000, (0, "send"): 0}


def test_get_not_available_without_put_becomes_fragments() -> None:
    rail = RdmaRail(flags=GET, refuse=frozenset({"get"}), refuse_with=NOT_AVAILABLE)
    job = rdma_world(2, one_message(12_000), [rail], trace=True)
    assert job.net.moved == {(0, "send"): 12_000}


@pytest.mark.parametrize("registrations", [0, 1, 2, 3])
@pytest.mark.parametrize("flags", [PUT, GET, PUT | GET])
def test_registrations_run_out(registrations: int, flags: int) -> None:
    rail = RdmaRail(flags=flags, registrations=registrations)
    job = rdma_world(2, exchange, [rail])
    if registrations == 0:
        assert job.net.moved[0, "put"] + job.net.moved[0, "get"] == 0
    assert job.net.faults["no room to register"]  # many messages are under way at once


@pytest.mark.parametrize("alignment", [8, 64])
@pytest.mark.parametrize("flags", [PUT, GET, PUT | GET])
def test_limits_and_alignment(flags: int, alignment: int) -> None:
    """Nothing over a limit is tried; what misses the alignment goes another way."""
    rail = RdmaRail(flags=flags, alignment=alignment, put_limit=3000, get_limit=3000)
    job = rdma_world(2, exchange, [rail, replace(rail, bandwidth=300)])
    moved = sum(count for (_, kind), count in job.net.moved.items() if kind != "send")
    assert moved > 200_000
    aligned = rdma_world(
        2, one_message(alignment * 300), [RdmaRail(flags=flags, alignment=alignment)]
    )
    assert not aligned.net.faults["limits"]


@pytest.mark.parametrize("seed", range(effort(3)))
@pytest.mark.parametrize("flags", [PUT, GET, PUT | GET])
@pytest.mark.parametrize("inline", [False, True])
def test_everything_fails_now_and_then(flags: int, inline: bool, seed: int) -> None:
    kinds = frozenset({"put", "get"})
    rail = RdmaRail(flags=flags, refuse=kinds, fail=kinds, odds=0.3, put_limit=3000, get_limit=3000)
    rails = [replace(rail, inline=inline), replace(rail, refuse_with=NOT_AVAILABLE)]
    job = rdma_world(2, exchange, rails, seed=seed)
    assert job.net.faults["refused"]
    assert job.net.faults["failed"]


@pytest.mark.parametrize("descriptors", [1, 2, 3])
@pytest.mark.parametrize("flags", [0, PUT, GET, PUT | GET])
def test_few_descriptors(flags: int, descriptors: int) -> None:
    """A BTL with next to no descriptors completes everything, RDMA included."""
    rail = RdmaRail(flags=flags, descriptors=descriptors, put_limit=30_000, get_limit=30_000)
    for rails in ([rail], [rail, replace(rail, bandwidth=100)]):
        job = rdma_world(2, exchange, rails, seed=descriptors)
        rdma = sum(count for (_, kind), count in job.net.moved.items() if kind != "send")
        assert (rdma > 100_000) == bool(flags)


@pytest.mark.parametrize("registrations", [2, 1000])
@pytest.mark.parametrize("descriptors", [1, 2, 3])
def test_everything_runs_out_at_once(descriptors: int, registrations: int) -> None:
    """Three ranks, three unlike rails, all to all: no room to send, put, get or register."""
    scarce = RdmaRail(descriptors=descriptors, registrations=registrations, put_limit=9000)
    rails = [
        replace(scarce, flags=PUT),
        replace(scarce, flags=GET, inplace=False, bandwidth=300),
        replace(scarce, flags=PUT | GET, min_rdma_pipeline_size=5000),
    ]
    job = rdma_world(3, exchange, rails, seed=descriptors, trace=True)
    # what is proposed; where a rail can get, put alone is not
    assert set(protocols(job)) >= set(EXPECTED) - {"RDMA Direct Put"}
    short = ["put", "get"] if registrations > 2 else ["register"]
    for what in ("send", *short):
        assert job.net.faults[f"no room to {what}"], job.net.faults


@pytest.mark.parametrize("flags", [PUT, GET])
def test_truncated(flags: int) -> None:
    """A put must not write beyond the receive: what does not fit comes as FRAGs."""
    job = rdma_world(2, truncated, [RdmaRail(flags=flags)], trace=True)
    assert protocols(job)[1] == "Send/Receive Pipeline"


def test_rails_with_different_eager_limits() -> None:
    """A message begun as a rendezvous finds no room there, and goes whole over the other rail."""
    rails = [
        RdmaRail(descriptors=1, eager_limit=200, min_rdma_pipeline_size=10**6),
        RdmaRail(descriptors=1, eager_limit=5000, min_rdma_pipeline_size=10**6),
    ]
    for seed in range(effort(3)):
        rdma_world(2, exchange, rails, seed=seed)


@pytest.mark.parametrize(("flags", "rails"), [(0, 1), (PUT, 1), (GET, 1), (0, 2)])
@pytest.mark.parametrize("pinned", [0, 1])
@pytest.mark.parametrize("after", [1, 3, 10, 30])
def test_path_lost_in_the_middle(flags: int, pinned: int, after: int, rails: int) -> None:
    """Every request of the peer fails once, and no registration or fragment is left behind.

    Over another rail the peer may still answer what was given up here: that is no defect.
    """

    def program(process: RankProcess) -> list[int]:
        comm, pml = world(process), process.pml
        other = 1 - comm.rank
        rooms = [buffer(40_000) for _ in range(4)]
        requests = [pml.irecv(comm, room, other, 1) for _, room in rooms]
        requests += [pml.isend(comm, send(pattern(40_000, 1)), other, 1, STANDARD) for _ in rooms]
        for _ in range(after):
            process.context.engine.spend(20_000)
            process.context.engine.progress()
        with process.context.engine.lock:
            process.context.btls[0].cut(comm.procs[other])
        for request in requests:
            process.context.engine.wait(request)
        return [request.error for request in requests]

    rail = RdmaRail(flags=flags, put_limit=3000, get_limit=3000, descriptors=5)
    job = rdma_world(2, program, [rail] * rails, mpi_leave_pinned=pinned)
    errors = {error for result in job.results for error in result}
    assert errors <= {0, ERR_PROC_FAILED, ERR_OTHER}
    assert errors != {0}
