"""Several rails: each carries its part by bandwidth, and as many are used as may be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ompy.frameworks.btl import GET, PUT, SEND_ALWAYS_CALLBACK, UNHURRIED
from ompy.net.virtual.virtual_network import Rail

from tests.sim.ob1.programs import one_message, steps
from tests.support.rdma_btl import RdmaModule, RdmaRail, rdma_world
from tests.support.worlds import virtual

SIZE = 1_100_000
KINDS = {"send": (0, 1_000_000), "put": (PUT, 20_000), "get": (GET, 20_000)}


@pytest.mark.parametrize("pinned", [0, 1])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_ten_to_one(kind: str, pinned: int) -> None:
    """Rails with 10:1 bandwidth carry 10:1 bytes, and both are done at the same time."""
    flags, least = KINDS[kind]
    fast = RdmaRail(flags=flags, bandwidth=1000, min_rdma_pipeline_size=least)
    rails = [fast, replace(fast, bandwidth=100)]
    job = rdma_world(2, one_message(SIZE), rails, pml_ob1_leave_pinned=pinned)
    carried = [job.net.moved[index, kind] for index in range(2)]
    assert carried[1] * 9.9 < carried[0] < carried[1] * 10.1
    assert sum(carried) > 0.99 * SIZE
    alone = rdma_world(2, one_message(SIZE), rails[:1], pml_ob1_leave_pinned=pinned)
    assert job.scheduler.time < 0.95 * alone.scheduler.time


@pytest.mark.parametrize("flags", [PUT, GET])
@pytest.mark.parametrize("most", [1, 2, 3, 4, 5])
def test_max_rdma_per_request(flags: int, most: int) -> None:
    job = rdma_world(
        2,
        one_message(50_000),
        [RdmaRail(flags=flags)] * 6,
        mpi_leave_pinned=1,
        pml_ob1_max_rdma_per_request=most,
    )
    kind = "put" if flags == PUT else "get"
    used = [index for index in range(6) if job.net.moved[index, kind]]
    assert len(used) == most


@pytest.mark.parametrize("most", [1, 2, 4, 6])
def test_max_send_per_range(most: int) -> None:
    rails = [RdmaRail(flags=0)] * 6
    job = rdma_world(2, one_message(50_000), rails, pml_ob1_max_send_per_range=most)
    used = [index for index in range(6) if job.net.moved[index, "send"] > 2000]
    assert len(used) == most


@pytest.mark.parametrize("use_all", [False, True])
def test_use_all_rdma(use_all: bool) -> None:
    """A rail with a higher latency is no eager rail: RDMA leaves it alone unless told."""
    rails = [RdmaRail(flags=PUT), RdmaRail(flags=PUT, latency=50)]
    job = rdma_world(2, one_message(200_000), rails, pml_ob1_use_all_rdma=use_all)
    assert job.net.moved[0, "put"]
    assert bool(job.net.moved[1, "put"]) == use_all


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_pipeline_depths(depth: int) -> None:
    rail = RdmaRail(flags=PUT, pipeline_send_length=100_000)
    settings = {"pml_ob1_recv_pipeline_depth": depth, "pml_ob1_send_pipeline_depth": depth}
    job = rdma_world(2, one_message(200_000), [rail], trace=True, **settings)
    asked = answered = most = 0
    for line in steps(job):
        asked += line == "receive C PUT"
        answered += line == "receive H FIN"
        most = max(most, asked - answered)
    assert most == depth
    first = steps(job).index("send F FRAG")
    assert steps(job)[first : first + depth + 1].count("send F FRAG") == depth


@pytest.mark.parametrize(
    ("rails", "put", "depth", "unhurried"),
    [
        pytest.param(1, True, 3, True, id="puts outlast them"),
        pytest.param(1, True, 1, False, id="one has to end for the next to go"),
        pytest.param(2, True, 3, False, id="the puts may go over another rail"),
        pytest.param(1, False, 3, False, id="they are the message's end"),
    ],
)
def test_fragments_that_nobody_waits_for(
    monkeypatch: pytest.MonkeyPatch, rails: int, put: bool, depth: int, unhurried: bool
) -> None:
    """A BTL that acknowledges need not hurry with FRAGs while puts of the message go on."""
    flags = list[int]()
    prepare = RdmaModule.prepare_src

    def looking(module: RdmaModule, *arguments: Any) -> Any:
        flags.append(arguments[-1])
        return prepare(module, *arguments)

    monkeypatch.setattr(RdmaModule, "prepare_src", looking)
    rail = RdmaRail(flags=PUT if put else 0, min_rdma_pipeline_size=5000)
    rdma_world(2, one_message(50_000), [rail] * rails, pml_ob1_send_pipeline_depth=depth)
    fragments = [one for one in flags if one & SEND_ALWAYS_CALLBACK]
    assert len(fragments) > 1
    assert {bool(one & UNHURRIED) for one in fragments} == {unhurried}


def test_messages_take_turns() -> None:
    """Over equal rails every message begins on the next."""
    rails = [RdmaRail(flags=GET)] * 3

    def several(process) -> None:
        for _ in range(6):
            one_message(20_000)(process)

    job = rdma_world(2, several, rails, pml_ob1_max_rdma_per_request=1, mpi_leave_pinned=1)
    assert [job.net.moved[index, "get"] for index in range(3)] == [40_000] * 3


def test_tcp_over_two_networks() -> None:
    """The same over tcp, on links whose rate the world limits: ten to one, and done together."""
    size = 330_000
    rails = (Rail("fast", bandwidth=1000, jitter=0), Rail("slow", bandwidth=100, jitter=0))
    settings = {"btl": "self,tcp", "btl_tcp_max_send_size": 8192, "btl_tcp_rndv_eager_limit": 0}
    both = {**settings, "btl_tcp_if_include": "fast,slow"}
    job = virtual(2, one_message(size, gather=True), rails=rails, trace=True, **both)
    carried = {"tcp[0]": 0, "tcp[1]": 0}
    for event in job.events():
        values = dict(event.fields)
        if event.name == "FRAG" and values["side"] == "send":
            carried[values["rail"]] += values["payload"]
    assert sum(carried.values()) == size
    assert carried["tcp[1]"] * 9.9 < carried["tcp[0]"] < carried["tcp[1]"] * 10.1
    alone = virtual(2, one_message(size, gather=True), rails=rails[:1], **settings)
    assert job.scheduler.time < 0.95 * alone.scheduler.time


def test_the_world_keeps_to_a_rate() -> None:
    """However many chunks are sent at once: 1.1 MB take 8.8 ms at 1000 Mbit/s."""
    rails = (Rail("only", bandwidth=1000, jitter=0, latency=0, window=1_000_000),)
    job = virtual(2, one_message(SIZE), rails=rails, btl="self,tcp")
    assert 8_800_000 < job.scheduler.time < 9_500_000


@pytest.mark.parametrize("kind", ["put", "get"])
def test_rdma_over_two_tcp_networks(kind: str) -> None:
    """The two ends know by its name which rail a registration belongs to."""
    rails = (Rail("fast", bandwidth=1000), Rail("slow", bandwidth=500))
    job = virtual(
        2,
        one_message(SIZE),
        rails=rails,
        trace=True,
        btl="self,tcp",
        btl_tcp_if_include="fast,slow",
        btl_tcp_flags=f"send,{kind},inplace",
        mpi_leave_pinned=1,
    )
    step = {"put": "WRITE", "get": "READ"}[kind]
    found = [dict(event.fields) for event in job.events() if event.name == step]
    parts = {values["rail"]: values["size"] for values in found}
    assert sorted(parts) == ["tcp[0]", "tcp[1]"]
    assert sum(parts.values()) == SIZE
