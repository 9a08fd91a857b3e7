"""The whole kit for coll components: what an author's test class derives from."""

from __future__ import annotations

from typing import ClassVar

from ompy.conformance.coll.endings import EndingSuite
from ompy.conformance.coll.in_flight import InFlightSuite
from ompy.conformance.coll.results import ResultSuite
from ompy.conformance.component_identity import ComponentIdentitySuite


class CollConformance(EndingSuite, InFlightSuite, ResultSuite, ComponentIdentitySuite):
    """Every suite there is for coll components.

    A test class derives from it and has a fixture `component`.
    """

    framework: ClassVar[str] = "coll"
