"""The sender's choice against a transcription of the seed's pseudo-code, as functions alone.

`tests/sim/ob1/test_selection_table.py` compares what goes over the wire.
"""

from __future__ import annotations

from itertools import product

import pytest
from ompy.frameworks.btl import GET, PUT, SEND
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS
from ompy.net.virtual.virtual_network import Rail
from ompy_components.pml.ob1.headers import UNION_SIZE
from ompy_components.pml.ob1.selection import (
    Protocol,
    choose,
    choose_large,
    first_payload,
    suits_direct,
)

from tests.sim.p2p import programs
from tests.support.seed_rule import Btl, candidate
from tests.support.worlds import virtual

MIN_RDMA = 10_000  # btl_min_rdma_pipeline_size
MODES = {
    STANDARD: "standard",
    BUFFERED: "buffered",
    SYNCHRONOUS: "synchronous",
    READY: "ready",
}


def chosen_by_ob1(
    mode: int,
    size: int,
    limit: int,
    *,
    btl_sendi: bool,
    btl_send_inplace: bool,
    contiguous_buffer: bool,
    btl_flags: int,
    leave_pinned: bool,
) -> str:
    protocol = choose(mode, size, limit, btl_sendi, btl_send_inplace)
    if protocol is None:
        direct = suits_direct(btl_flags, MIN_RDMA, leave_pinned, size)
        protocol = choose_large(mode, contiguous_buffer, btl_flags if direct else 0)
    return protocol.value


@pytest.mark.parametrize("mode", [STANDARD, BUFFERED, SYNCHRONOUS, READY])
def test_choice_is_the_seeds(mode: int) -> None:
    limit = 4096 - UNION_SIZE
    sizes = (0, 1, 255, 256, 257, limit - 1, limit, limit + 1, MIN_RDMA, MIN_RDMA + 1, 10**9)
    seen = set()
    for size, sendi, inplace, contiguous, flags, pinned in product(
        sizes, (False, True), (False, True), (False, True), (0, PUT, GET, PUT | GET), (False, True)
    ):
        case = {
            "btl_sendi": sendi,
            "btl_send_inplace": inplace,
            "contiguous_buffer": contiguous,
            "btl_flags": SEND | flags,
            "leave_pinned": pinned,
        }
        btl = Btl(
            btl_sendi=sendi,
            btl_send_inplace=inplace,
            btl_flags=flags,
            btl_eager_limit=4096,
            btl_rndv_eager_limit=4096,
            btl_min_rdma_pipeline_size=MIN_RDMA,
            btl_pipeline_send_length=0,
            leave_pinned=pinned,
        )
        expected = candidate(MODES[mode], size, contiguous, btl)
        seen.add(expected)
        assert chosen_by_ob1(mode, size, limit, **case) == expected, (size, case)
    assert len(seen) == {STANDARD: 7, READY: 7, BUFFERED: 3, SYNCHRONOUS: 4}[mode]


@pytest.mark.parametrize(
    ("size", "eager", "rendezvous", "expected"),
    [
        (5000, 1000, 512, 512),
        (5000, 512, 1000, 512),
        (5000, 1000, 0, 0),
        (1000, 1000, 512, 1000),  # synchronous: all of it
        (1001, 1000, 2000, 1000),
    ],
)
def test_the_first_fragment_has_the_smaller_of_two_limits(
    size: int, eager: int, rendezvous: int, expected: int
) -> None:
    assert first_payload(size, eager, rendezvous) == expected


def test_every_protocol_is_in_use() -> None:
    """A run over sm, tcp and self reports each protocol; the trace names what was sent."""
    seen = set()
    for btl in ("self,sm", "self,tcp"):
        job = virtual(2, programs.ring, btl=btl, trace=True, rails=(Rail("only"),))
        for event in job.events():
            if event.name == "PROTOCOL":
                seen.add(dict(event.fields)["protocol"])
    assert seen >= {
        Protocol.EAGER_IMMEDIATE.value,
        Protocol.EAGER_PREPARED.value,
        Protocol.SEND_RECEIVE_PIPELINE.value,
    }
