"""Every protocol of the seed: its exact steps, in order, with the seed's letters.

The letters that are missing from a protocol (B, D, G or J) are those of the arrows in the seed's
figures. RDMA Pipeline has F and H twice in the seed: FRAGs (F, H) and, further down, the FIN of
a put (F) and its arrival (H). Letters of a step repeat where the seed's step is one of several:
`send E PUT` takes the message in, `send E WRITE` starts the operation.
"""

from __future__ import annotations

import pytest
from ompy.frameworks.btl import GET, PUT
from ompy.frameworks.pml import BUFFERED, STANDARD, SYNCHRONOUS
from ompy_components.pml.ob1.diagnosis.steps import LETTERS
from ompy_components.pml.ob1.selection import Protocol

from tests.sim.ob1.programs import one_message, protocols, steps
from tests.support.rdma_btl import RdmaRail, rdma_world

PIPELINE = [
    "send A RNDV",
    "receive C ACK",
    "send E ACK",
    "send E FRAG",
    "send E FRAG",
    "send E FRAG",
    "send F FRAG",
    "receive G FRAG",
    "receive G FRAG",
    "receive G FRAG",
    "send F COMPLETE",
    "receive G FRAG",
    "receive G COMPLETE",
]
# protocol: message, rails, steps
EXPECTED = {
    "Eager Send (Prepared)": (
        one_message(900),
        [RdmaRail()],
        ["send A MATCH", "send B COMPLETE", "receive C COMPLETE"],
    ),
    "Eager Send (Allocated)": (
        one_message(900),
        [RdmaRail(inplace=False)],
        ["send A MATCH", "send B COMPLETE", "receive C COMPLETE"],
    ),
    "RDMA Direct Put": (
        one_message(12_000),
        [RdmaRail(flags=PUT)] * 2,
        [
            "send A RNDV",
            "receive C PUT",
            "receive C PUT",
            "send E PUT",
            "send E WRITE",
            "send E PUT",
            "send E WRITE",
            "send F FIN",
            "send F FIN",
            "send F COMPLETE",
            "receive H FIN",
            "receive H FIN",
            "receive I COMPLETE",
        ],
    ),
    "RDMA Direct Get": (
        one_message(12_000),
        [RdmaRail(flags=GET)] * 2,
        [
            "send A RGET",
            "receive C READ",
            "receive C READ",
            "receive D FIN",
            "receive D FIN",
            "receive D COMPLETE",
            "send F FIN",
            "send F FIN",
            "send G COMPLETE",
        ],
    ),
    "Send/Receive Pipeline": (one_message(8000, gather=True), [RdmaRail(flags=PUT)], PIPELINE),
    "RDMA Pipeline": (
        one_message(30_000),
        [RdmaRail(flags=PUT, pipeline_send_length=8000, pipeline_frag_size=11_000)],
        [
            "send A RNDV",
            "receive C ACK",  # of the tail
            "receive C PUT",
            "receive C PUT",
            "send F ACK",
            "send F FRAG",
            "send F FRAG",
            "send F FRAG",
            "send G PUT",
            "send G WRITE",
            "send G PUT",
            "send G WRITE",
            "send H FRAG",
            "receive K FRAG",
            "receive K FRAG",
            "receive K FRAG",
            "send F FIN",
            "send F FIN",
            "send F COMPLETE",  # its last FRAG has left
            "receive K FRAG",
            "receive H FIN",
            "receive H FIN",
            "receive I COMPLETE",
        ],
    ),
    "Buffered Pipeline": (one_message(8000, mode=BUFFERED), [RdmaRail(flags=PUT)], PIPELINE),
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_exact_steps(name: str) -> None:
    program, rails, expected = EXPECTED[name]
    job = rdma_world(2, program, rails, trace=True)
    assert steps(job) == expected
    assert protocols(job)[0] == name


def test_eager_immediate() -> None:
    """Over sm, which has `sendi`: the send is complete in step A itself."""
    from tests.support.worlds import virtual

    job = virtual(2, one_message(100), btl="self,sm", trace=True)
    assert steps(job) == ["send A MATCH", "send A COMPLETE", "receive C COMPLETE"]
    assert protocols(job) == ["Eager Send (Immediate)"]


def test_no_letter_is_left_out() -> None:
    """What the expectations above use is the whole table, Immediate's B apart.

    The receiver of an eager message cannot tell which of the three it was: it says C.
    """
    for protocol in Protocol:
        if protocol is Protocol.EAGER_IMMEDIATE:
            continue
        used = {line.rpartition(" ")[0] for line in EXPECTED[protocol.value][2]}
        there = {f"{side} {letter}" for (side, _), letter in LETTERS[protocol].items()}
        assert used == there


@pytest.mark.parametrize(
    ("size", "mode", "expected"),
    [
        (0, SYNCHRONOUS, "Send/Receive Pipeline"),
        (900, SYNCHRONOUS, "Send/Receive Pipeline"),
        (900, BUFFERED, "Eager Send (Allocated)"),
        (12_000, SYNCHRONOUS, "RDMA Direct Get"),
        (30_000, STANDARD, "RDMA Pipeline"),
    ],
)
def test_mode_and_size_decide(size: int, mode: int, expected: str) -> None:
    job = rdma_world(2, one_message(size, mode=mode), trace=True)
    assert protocols(job)[0] == expected


@pytest.mark.parametrize("flags", [PUT, GET, PUT | GET])
def test_leave_pinned_makes_large_messages_direct(flags: int) -> None:
    for setting in ("pml_ob1_leave_pinned", "mpi_leave_pinned", "opal_leave_pinned"):
        job = rdma_world(
            2, one_message(500_000), [RdmaRail(flags=flags)], trace=True, **{setting: 1}
        )
        expected = "RDMA Direct Get" if flags & GET else "RDMA Direct Put"
        assert protocols(job) == [expected, expected]


def test_pipeline_with_no_tail_is_acknowledged_by_its_first_put() -> None:
    rail = RdmaRail(flags=PUT, pipeline_send_length=0, pipeline_frag_size=15_000)
    job = rdma_world(2, one_message(30_000), [rail], trace=True)
    names = [line.split()[2] for line in steps(job)]
    assert "ACK" not in names
    assert "FRAG" not in names
    assert names.count("WRITE") == 2
