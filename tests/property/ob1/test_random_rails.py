"""Random programs over random rails: RDMA, faults and scarcity change nothing that MPI sees.

The programs and the rules are those of `test_matching_model`; the rails are drawn too, with what
they can do, their limits, how often they refuse or fail, and how little room they have.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ompy.frameworks.btl import GET, NOT_AVAILABLE, PUT

from tests.property.ob1.test_matching_model import actions, judge, run_rank
from tests.support.effort import effort
from tests.support.rdma_btl import REFUSED, RdmaRail, rdma_world

KINDS = st.frozensets(st.sampled_from(["put", "get"]))
SIZES = (0, 200, 4000, 9000, 30_000)
RAILS = st.builds(
    RdmaRail,
    flags=st.sampled_from([0, PUT, GET, PUT | GET]),
    bandwidth=st.sampled_from([100, 1000, 1000, 3000]),
    latency=st.sampled_from([1, 1, 1, 20]),
    eager_limit=st.sampled_from([200, 1024, 5000]),
    rndv_eager_limit=st.sampled_from([0, 100, 5000]),
    max_send_size=st.sampled_from([5000, 9000]),
    pipeline_send_length=st.sampled_from([0, 1, 10_000, 10**9]),
    pipeline_frag_size=st.sampled_from([0, 1000, 8000]),
    min_rdma_pipeline_size=st.sampled_from([0, 10_000, 10**9]),
    put_limit=st.sampled_from([0, 3000]),
    get_limit=st.sampled_from([0, 3001]),
    alignment=st.sampled_from([1, 1, 8]),
    descriptors=st.sampled_from([1, 2, 3, 100]),
    registrations=st.sampled_from([0, 1, 3, 100]),
    inplace=st.booleans(),
    inline=st.booleans(),
    refuse=KINDS,
    refuse_with=st.sampled_from([REFUSED, NOT_AVAILABLE]),
    fail=KINDS,
    odds=st.sampled_from([0.1, 1.0]),
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Any], list[RdmaRail], int, dict[str, object]]:
    ranks = draw(st.integers(1, 3))
    programs = [draw(actions(ranks, SIZES)) for _ in range(ranks)]
    rails = draw(st.lists(RAILS, min_size=1, max_size=3))
    parameters = {
        "pml_ob1_leave_pinned": draw(st.sampled_from([-1, 0, 1])),
        "pml_ob1_use_all_rdma": draw(st.booleans()),
        "pml_ob1_max_rdma_per_request": draw(st.integers(1, 3)),
        "pml_ob1_max_send_per_range": draw(st.integers(1, 3)),
        "pml_ob1_recv_pipeline_depth": draw(st.integers(1, 4)),
        "pml_ob1_send_pipeline_depth": draw(st.integers(1, 4)),
    }
    return programs, rails, draw(st.integers(0, 2**32)), parameters


@settings(
    max_examples=effort(40),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(worlds())
def test_random_rails_keep_the_rules(world: tuple[Any, ...]) -> None:
    programs, rails, seed, parameters = world
    todo = [lambda process, mine=mine: run_rank(process, mine) for mine in programs]
    job = rdma_world(len(programs), todo, rails, seed=seed, **parameters)
    for rank, outcome in enumerate(job.results):
        judge(rank, programs, outcome)
