"""The whole kit for BTLs: what an author's test class derives from."""

from __future__ import annotations

from ompy.conformance.completion import CompletionSuite
from ompy.conformance.delivery import DeliverySuite
from ompy.conformance.flow_control import FlowControlSuite
from ompy.conformance.identity import IdentitySuite
from ompy.conformance.life_cycle import LifeCycleSuite
from ompy.conformance.reachability import ReachabilitySuite


class BtlConformance(
    IdentitySuite,
    LifeCycleSuite,
    ReachabilitySuite,
    DeliverySuite,
    FlowControlSuite,
    CompletionSuite,
):
    """Every suite there is for BTLs.

    A test class derives from it and has a fixture `component`; README.md shows one.
    """
