"""Every protocol between real processes, over shared memory and over tcp, and several rails."""

from __future__ import annotations

import pytest
from ompy_components.pml.ob1.diagnosis.steps import LETTERS
from ompy_components.pml.ob1.selection import Protocol

from tests.proc.protocol_programs import PARTS
from tests.support.worlds import real

pytestmark = pytest.mark.proc

PROGRAMS = "tests.proc.protocol_programs"
NAMES = {protocol.value for protocol in Protocol}
# the receiver of an eager message cannot tell which of the three it was: it says C
STEPS = {
    f"{side} {letter} {event.partition(' ')[0]}"
    for table in LETTERS.values()
    for (side, event), letter in table.items()
} - {"receive B COMPLETE"}
# a FRAG that follows another, where a BTL does not complete each at once
FOLLOWING = {"send F FRAG", "send H FRAG"}
PIPELINED = {
    "max_send_size": 8192,
    "min_rdma_pipeline_size": 20_000,
    "rdma_pipeline_frag_size": 50_000,
}


def settings(btl: str, flags: str, pinned: bool) -> dict[str, object]:
    """A BTL with these flags; a message may be put in a pipeline, or whole when it is pinned."""
    common = {"btl": f"self,{btl}", f"btl_{btl}_flags": flags, "mpi_leave_pinned": int(pinned)}
    limits = {**PIPELINED, "eager_limit": 4096, "rdma_pipeline_send_length": 40_000}
    return {**common, **{f"btl_{btl}_{name}": value for name, value in limits.items()}}


@pytest.mark.parametrize("btl", ["sm", "tcp"])
def test_each_protocol(btl: str) -> None:
    """Three jobs: large messages are put in a pipeline, put at once, and got.

    Over tcp without failover a registration costs nothing, so there a message is put at once.
    """
    inplace = ",inplace" if btl == "tcp" else ""
    seen: set[str] = set()
    steps: set[str] = set()
    for flags, pinned, large in (
        ("send,put,failover" if inplace else "send,put", False, "RDMA Pipeline"),
        ("send,put", True, "RDMA Direct Put"),
        ("send,put,get", True, "RDMA Direct Get"),
    ):
        job = settings(btl, flags + inplace, pinned)
        if btl == "sm":
            job["btl_sm_ring_slots"] = 4
        sender, receiver = real(2, f"{PROGRAMS}:each_protocol", settings=job)
        proposed = [protocol for side, protocol in sender["taken"] if side == "send"]
        settled = [protocol for side, protocol in receiver["taken"] if side == "receive"]
        small = ["Send/Receive Pipeline"]  # the synchronous one
        by_send = ["Send/Receive Pipeline"] * 3  # buffered, in pieces at one end or the other
        assert settled == [*small, large, large, *by_send]
        rendezvous = ["Buffered Pipeline", "Send/Receive Pipeline", large]
        assert proposed[3:9] == [*small, large, large, *rendezvous]
        seen |= set(proposed)
        steps |= {*sender["steps"], *receiver["steps"]}
    missing = NAMES - seen
    # sm copies whatever it sends
    assert missing == ({"Eager Send (Prepared)"} if btl == "sm" else set())
    assert STEPS - FOLLOWING <= steps <= STEPS


def test_shared_memory_and_tcp_together() -> None:
    """Three quarters of the FRAGs go over the rail that has three quarters of the bandwidth."""
    job = {
        "btl": "self,sm,tcp",
        "btl_tcp_exclusivity": 65536,
        "btl_sm_bandwidth": 300,
        "btl_tcp_bandwidth": 100,
        "btl_sm_flags": "send",
        "btl_tcp_flags": "send,inplace",
    }
    for moved in real(2, f"{PROGRAMS}:bytes_by_rail", settings=job):
        assert sum(moved.values()) == PARTS
        assert moved["sm"] == pytest.approx(0.75 * PARTS, rel=0.05)


@pytest.mark.parametrize("flags", ["send,inplace", "send,put,inplace"])
def test_links(flags: str) -> None:
    """Of three tcp links each carries half as much as the one before it."""
    job = {
        "btl": "self,tcp",
        "btl_tcp_links": 3,
        "btl_tcp_flags": flags,
        "pml_ob1_use_all_rdma": 1,
        "mpi_leave_pinned": 1,
    }
    for moved in real(2, f"{PROGRAMS}:bytes_by_rail", settings=job):
        assert sum(moved.values()) == PARTS
        parts = [moved[f"tcp[{link}]"] / PARTS for link in range(3)]
        assert parts == pytest.approx([4 / 7, 2 / 7, 1 / 7], abs=0.02)
