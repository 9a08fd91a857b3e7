"""The whole kit for osc components: what an author's test class derives from."""

from __future__ import annotations

from typing import ClassVar

from ompy.conformance.component_identity import ComponentIdentitySuite
from ompy.conformance.osc.epochs import EpochSuite
from ompy.conformance.osc.operations import OperationSuite


class OscConformance(EpochSuite, OperationSuite, ComponentIdentitySuite):
    """Every suite there is for osc components.

    A test class derives from it and has a fixture `component`.
    """

    framework: ClassVar[str] = "osc"
