"""The whole kit for BTLs: what an author's test class derives from."""

from __future__ import annotations

from ompy.conformance.atomics import AtomicSuite
from ompy.conformance.completion import CompletionSuite
from ompy.conformance.datagram_faults import DatagramFaultSuite
from ompy.conformance.delivery import DeliverySuite
from ompy.conformance.determinism import DeterminismSuite
from ompy.conformance.failover import FailoverSuite
from ompy.conformance.flow_control import FlowControlSuite
from ompy.conformance.identity import IdentitySuite
from ompy.conformance.leaks import LeakSuite
from ompy.conformance.life_cycle import LifeCycleSuite
from ompy.conformance.messages import MessageSuite
from ompy.conformance.reachability import ReachabilitySuite
from ompy.conformance.remote_memory import RemoteMemorySuite
from ompy.conformance.stream_faults import StreamFaultSuite


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
