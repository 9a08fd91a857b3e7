"""r2's arrays: who is in them, what is left when a rail goes, and that it can come back."""

from __future__ import annotations

import pytest
from ompy.data.errors import MPIError
from ompy.engine.base import Engine
from ompy.frameworks.bml import RailArray
from ompy.frameworks.btl import GET, PUT, SEND, BtlModule, Endpoint
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.frameworks.wireup import WireUp
from ompy.net.base import Network
from ompy.trace.sink import Trace
from ompy_components.bml.r2.module import R2


class FakeModule(BtlModule):
    """Reaches the ranks it is told to."""

    def __init__(self, context, name, *, exclusivity=100, latency=1, bandwidth=100, reach=(1,)):
        super().__init__(name, context)
        self.exclusivity = exclusivity
        self.latency = latency
        self.bandwidth = bandwidth
        self.eager_limit = self.max_send_size = 1000
        self.reach = reach
        self.ended = False

    def add_procs(self, procs):
        return [Endpoint(self, p) if p.rank in self.reach else None for p in procs]

    def finalize(self):
        self.ended = True


class Quiet(Engine):
    def __init__(self):
        super().__init__(None)

    def now(self):
        return 0


@pytest.fixture
def context() -> RankContext:
    engine = Quiet()
    return RankContext(
        0,
        [Proc(0, 0, 0, "here"), Proc(1, 0, 1, "here"), Proc(2, 1, 0, "there")],
        engine=engine,
        network=Network(),
        wireup=WireUp(),
        trace=Trace(0, engine.now),
        job_id=b"",
        job_key=b"",
    )


def names(array: RailArray) -> list[str]:
    return [rail.module.name for rail in array.rails]


def test_highest_exclusivity_wins_and_equals_share(context: RankContext) -> None:
    context.btls = [
        FakeModule(context, "tcp", exclusivity=100, reach=(1, 2)),
        FakeModule(context, "slow", exclusivity=500, latency=9, bandwidth=100),
        FakeModule(context, "fast", exclusivity=500, latency=2, bandwidth=300),
    ]
    context.btls[1].flags = SEND | GET
    context.btls[1].max_send_size = 700
    endpoint = R2(context).endpoint(context.procs[1])
    assert names(endpoint.send) == ["fast", "slow"]
    assert [rail.weight for rail in endpoint.send.rails] == [0.75, 0.25]
    assert names(endpoint.eager) == ["fast"]
    assert names(endpoint.rdma) == ["slow"]
    assert endpoint.max_send_size == 700
    assert endpoint.flags == SEND | GET
    assert names(R2(context).endpoint(context.procs[2]).send) == ["tcp"]


def test_rdma_rails_are_weighed_among_themselves(context: RankContext) -> None:
    context.btls = [
        FakeModule(context, "plain", bandwidth=600),
        FakeModule(context, "puts", bandwidth=300),
        FakeModule(context, "gets", bandwidth=100),
    ]
    context.btls[0].min_rdma_pipeline_size = 9000  # says nothing: it has no RDMA
    context.btls[1].flags = SEND | PUT
    context.btls[1].min_rdma_pipeline_size = 500
    context.btls[2].flags = SEND | GET
    endpoint = R2(context).endpoint(context.procs[1])
    assert [rail.weight for rail in endpoint.send.rails] == [0.6, 0.3, 0.1]
    assert [rail.weight for rail in endpoint.rdma.rails] == [0.75, 0.25]
    assert endpoint.send_limit == 500


def test_turns(context: RankContext) -> None:
    context.btls = [FakeModule(context, name, latency=3) for name in "abc"]
    array = R2(context).endpoint(context.procs[1]).send
    turns = ["".join([rail.module.name for rail in array.in_turn()]) for _ in range(4)]
    assert turns == ["abc", "bca", "cab", "abc"]


def test_round_robin(context: RankContext) -> None:
    context.btls = [FakeModule(context, name, latency=3) for name in "abc"]
    endpoint = R2(context).endpoint(context.procs[1])
    assert [endpoint.eager.next().module.name for _ in range(7)] == list("abcabca")


def test_eager_is_refilled_from_slower_survivors(context: RankContext) -> None:
    """Open MPI leaves the eager array empty here (reference openmpi.md 3.14.6)."""
    fast = FakeModule(context, "fast", latency=1)
    slow = FakeModule(context, "slow", latency=50)
    context.btls = [fast, slow]
    r2 = R2(context)
    endpoint = r2.endpoint(context.procs[1])
    assert names(endpoint.eager) == ["fast"]
    r2.remove_rail(context.procs[1], fast)
    assert names(endpoint.eager) == names(endpoint.send) == ["slow"]
    assert endpoint.send.rails[0].weight == 1.0
    r2.add_rail(context.procs[1], fast)
    assert names(endpoint.eager) == ["fast"]
    assert sorted(names(endpoint.send)) == ["fast", "slow"]
    r2.remove_rail(context.procs[1], fast)
    r2.remove_rail(context.procs[1], slow)
    assert names(endpoint.send) == []


def test_unreachable_names_both_and_what_was_tried(context: RankContext) -> None:
    context.btls = [FakeModule(context, "sm"), FakeModule(context, "tcp")]
    r2 = R2(context)
    with pytest.raises(MPIError, match="rank 0 on here cannot reach rank 2 on there.*sm, tcp"):
        r2.endpoint(context.procs[2])
    with pytest.raises(MPIError, match="add self to the parameter btl"):
        r2.endpoint(context.procs[0])


def test_finalize_ends_every_module(context: RankContext) -> None:
    context.btls = [FakeModule(context, "a"), FakeModule(context, "b")]
    R2(context).finalize()
    assert all(module.ended for module in context.btls)


def test_when_the_last_goes_the_next_class_stands_in(context: RankContext) -> None:
    best = FakeModule(context, "best", exclusivity=1024)
    middle = [FakeModule(context, name, latency=5) for name in ("one", "two")]
    last = FakeModule(context, "last", exclusivity=10)
    context.btls = [last, *middle, best]
    r2, peer = R2(context), context.procs[1]
    assert names(r2.endpoint(peer).send) == ["best"]
    assert r2.stand_in(peer)
    r2.remove_rail(peer, best)
    endpoint = r2.endpoint(peer)
    assert sorted(names(endpoint.send)) == sorted(names(endpoint.eager)) == ["one", "two"]
    r2.add_rail(peer, best)
    assert sorted(names(endpoint.send)) == ["best", "one", "two"], "those that stand in stay"
    assert names(endpoint.eager) == ["best"]
    assert r2.stand_in(peer)
    assert sorted(names(endpoint.send)) == ["best", "last", "one", "two"]
    assert not r2.stand_in(peer), "there is no other class"


def test_nobody_stands_in_who_does_not_reach_the_peer(context: RankContext) -> None:
    best = FakeModule(context, "best", exclusivity=1024)
    context.btls = [best, FakeModule(context, "other", reach=(2,))]
    r2, peer = R2(context), context.procs[1]
    assert not r2.stand_in(peer), "it is not used yet"
    r2.endpoint(peer)
    assert not r2.stand_in(peer)
    assert names(r2.endpoint(peer).send) == ["best"]


def test_who_cannot_send_stands_beside_those_who_can(context: RankContext) -> None:
    silent = FakeModule(context, "silent", exclusivity=2048)
    silent.flags = PUT | GET
    silent.max_send_size = 0
    context.btls = [FakeModule(context, "tcp"), silent, FakeModule(context, "last", exclusivity=1)]
    r2, peer = R2(context), context.procs[1]
    endpoint = r2.endpoint(peer)
    assert names(endpoint.send) == names(endpoint.eager) == ["tcp"]
    assert names(endpoint.rdma) == ["silent"]
    assert endpoint.max_send_size == 1000
    r2.remove_rail(peer, silent)
    assert not endpoint.rdma.rails
    r2.add_rail(peer, silent)
    assert names(endpoint.rdma) == ["silent"]
    context.btls = [silent]
    silent.reach = (2,)
    with pytest.raises(MPIError, match="cannot reach"):
        R2(context).endpoint(context.procs[2])
