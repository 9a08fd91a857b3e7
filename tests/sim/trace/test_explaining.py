"""What ob1 explains is what it does: asked first, then sent and traced, over rails of all kinds."""

from __future__ import annotations

import itertools

import pytest
from ompy.frameworks.btl import GET, PUT
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS
from ompy_components.pml.bfo.component import BfoComponent

from tests.sim.ob1.programs import one_message
from tests.sim.p2p.programs import world
from tests.support.effort import THOROUGH
from tests.support.failing_rails import FailingRail, failing_world
from tests.support.rdma_btl import RdmaRail, rdma_world

RAILS = {
    "put": [RdmaRail(flags=PUT)],
    "get": [RdmaRail(flags=GET, inplace=False)],
    "put and get": [RdmaRail(), RdmaRail(flags=PUT, bandwidth=100)],
    "neither": [RdmaRail(flags=0)],
}


def asked_and_done(rails, size, mode, contiguous, **settings):
    """The explanation, and the protocol that the trace shows."""
    found = []
    send = one_message(size, mode=mode, gather=not contiguous)

    def program(process) -> None:
        if process.context.rank == 0:
            # a communicator of its own, so that the messages' sequence is not touched
            comm = world(process)
            found.append(process.pml.explain(comm, 1, size, mode, contiguous))
            process.release(comm)
        send(process)

    job = rdma_world(2, program, rails, trace=True, **settings)
    first = next(event for event in job.events() if event.name == "PROTOCOL")
    return found[0], dict(first.fields)["protocol"]


@pytest.mark.parametrize("kind", sorted(RAILS))
def test_it_does_what_it_says(kind: str) -> None:
    modes, sizes = (STANDARD, BUFFERED, SYNCHRONOUS), (200, 968, 969, 20_001)
    if THOROUGH:
        modes, sizes = (*modes, READY), (0, 1, 256, 257, *sizes, 20_000)
    for size, mode, contiguous in itertools.product(sizes, modes, (True, False)):
        if not contiguous and size < 2:
            continue  # no bytes are no pieces
        said, did = asked_and_done(RAILS[kind], size, mode, contiguous)
        assert said.protocol == did, (size, mode, contiguous)
        at = [protocol for first, protocol in said.sizes if first <= size]
        assert at[-1] == did


@pytest.mark.parametrize("kind", sorted(RAILS))
def test_asking_changes_nothing(kind: str) -> None:
    """Every setting that was tried out is back: the second answer is the first."""
    found = []

    def program(process) -> None:
        if process.context.rank == 0:
            comm = world(process)
            found.extend(process.pml.explain(comm, 1, 9000, STANDARD, True) for _ in range(2))

    rdma_world(2, program, RAILS[kind][:1])
    assert found[0] == found[1]
    assert found[0].changes


def test_another_pml_explains_with_its_own_parameters() -> None:
    """bfo builds on ob1, whose parameters do not exist in a job that has bfo."""
    found = []

    def program(process) -> None:
        if process.context.rank == 0:
            comm = world(process)
            found.append(process.pml.explain(comm, 1, 50_000, STANDARD, True))

    rails = [FailingRail(flags=PUT)] * 2
    failing_world([program] * 2, rails)
    (said,) = found
    parts = (*said.branches, *said.limits, *said.changes)
    names = {name for part in parts for name in part.parameters if name.startswith("pml_")}
    own = {parameter.name for parameter in BfoComponent.parameters}
    assert {name.removeprefix("pml_bfo_") for name in names} <= own
    assert {"pml_bfo_leave_pinned", "pml_bfo_send_pipeline_depth", "pml_bfo_piece_ms"} <= names
    assert any("in 200 ms" in limit.text for limit in said.limits)


def test_what_would_change_it_does() -> None:
    """A change that can be made here is made, and the message takes the protocol named."""
    said, _ = asked_and_done(RAILS["put"], 50_000, STANDARD, True)
    changes = {change.text: change.protocol for change in said.changes}
    assert said.protocol == "RDMA Pipeline"
    assert changes["pml_ob1_leave_pinned 1"] == "RDMA Direct Put"
    _, did = asked_and_done(RAILS["put"], 50_000, STANDARD, True, pml_ob1_leave_pinned=1)
    assert did == "RDMA Direct Put"
    assert changes["btl_rdma_min_rdma_pipeline_size of 50000 or more"] == "RDMA Direct Put"
    _, did = asked_and_done([RdmaRail(flags=PUT, min_rdma_pipeline_size=50_000)], 50_000, 0, True)
    assert did == "RDMA Direct Put"
    assert changes["btl_rdma_eager_limit of 50056 or more"] == "Eager Send (Prepared)"
    assert changes["buffered mode"] == "Buffered Pipeline"
    assert changes["a buffer that is not contiguous"] == "Send/Receive Pipeline"
    assert said.sizes[0] == (0, "Eager Send (Allocated)")
    assert (969, "RDMA Direct Put") in said.sizes
    assert (20_001, "RDMA Pipeline") in said.sizes
