"""The whole kit for BTLs: what an author's test class derives from."""

from __future__ import annotations

from ompy.conformance.btl.atomics import AtomicSuite
from ompy.conformance.btl.completion import CompletionSuite
from ompy.conformance.btl.datagram_faults import DatagramFaultSuite
from ompy.conformance.btl.delivery import DeliverySuite
from ompy.conformance.btl.determinism import DeterminismSuite
from ompy.conformance.btl.failover import FailoverSuite
from ompy.conformance.btl.flow_control import FlowControlSuite
from ompy.conformance.btl.identity import IdentitySuite
from ompy.conformance.btl.leaks import LeakSuite
from ompy.conformance.btl.life_cycle import LifeCycleSuite
from ompy.conformance.btl.messages import MessageSuite
from ompy.conformance.btl.reachability import ReachabilitySuite
from ompy.conformance.btl.remote_memory import RemoteMemorySuite
from ompy.conformance.btl.stream_faults import StreamFaultSuite


class BtlConformance(
    # pytest runs the tests of the last base first
    MessageSuite,
    LeakSuite,
    DeterminismSuite,
    StreamFaultSuite,
    DatagramFaultSuite,
    FailoverSuite,
    AtomicSuite,
    RemoteMemorySuite,
    CompletionSuite,
    FlowControlSuite,
    DeliverySuite,
    ReachabilitySuite,
    LifeCycleSuite,
    IdentitySuite,
):
    """Every suite there is for BTLs.

    A test class derives from it and has a fixture `component`; README.md shows one.
    """
