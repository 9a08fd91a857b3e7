"""The sender's choice against an independent transcription of the seed's pseudo-code."""

from __future__ import annotations

from itertools import product

import pytest
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS
from ompy.net.virtual import Rail
from ompy_components.pml.ob1.headers import UNION_SIZE
from ompy_components.pml.ob1.selection import Protocol, choose

from tests.sim.p2p import programs
from tests.support.worlds import virtual


def seed_rule(mode: int, data_size: int, limit: int, sendi: bool, inplace: bool) -> str:
    """seeds/ob1-protocols.rst, Protocol Selection, for a BTL without RDMA."""
    standard, buffered, ready = mode == STANDARD, mode == BUFFERED, mode == READY
    if (standard or buffered or ready) and sendi and data_size <= 256:
        return "Eager Send (Immediate)"
    if data_size <= limit:
        if standard or ready:
            if data_size != 0 and inplace:
                return "Eager Send (Prepared)"
            return "Eager Send (Immediate)" if sendi else "Eager Send (Allocated)"
        if buffered:
            return "Eager Send (Immediate)" if sendi else "Eager Send (Allocated)"
        return "Send/Receive Pipeline"
    # Buffered Pipeline and RDMA Pipeline: the MPI floor copies buffered sends, and without
    # RDMA what is left of both is the send/receive pipeline
    return "Send/Receive Pipeline"


@pytest.mark.parametrize("mode", [STANDARD, BUFFERED, SYNCHRONOUS, READY])
def test_choice_is_the_seeds(mode: int) -> None:
    limit = 4096 - UNION_SIZE
    sizes = (0, 1, 255, 256, 257, limit - 1, limit, limit + 1, 10**9)
    for size, sendi, inplace in product(sizes, (False, True), (False, True)):
        chosen = choose(mode, size, limit, sendi, inplace)
        assert chosen.value == seed_rule(mode, size, limit, sendi, inplace), (size, sendi, inplace)


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
