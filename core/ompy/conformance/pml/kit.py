"""The whole kit for PML components: what an author's test class derives from."""

from __future__ import annotations

from typing import ClassVar

from ompy.conformance.component_identity import ComponentIdentitySuite
from ompy.conformance.pml.completion import CompletionSuite
from ompy.conformance.pml.delivery import DeliverySuite
from ompy.conformance.pml.wrapping import WrappingSuite


class PmlConformance(WrappingSuite, CompletionSuite, DeliverySuite, ComponentIdentitySuite):
    """Every suite there is for PML components, wrappers among them.

    A test class derives from it and has a fixture `component`.
    """

    framework: ClassVar[str] = "pml"
