"""What every suite for coll components has."""

from __future__ import annotations

from typing import ClassVar

import pytest

from ompy.conformance.component_kit import ComponentSuite
from ompy.conformance.mpi_worlds import MpiWorlds
from ompy.conformance.registries import Settings
from ompy.frameworks.coll import CollComponent


class CollSuite(ComponentSuite):
    """Base of the suites for coll components."""

    framework: ClassVar[str] = "coll"

    @pytest.fixture
    def worlds(self, component: CollComponent, settings: Settings) -> MpiWorlds:
        """What makes the worlds of a test."""
        if component.serves_groups:
            pytest.skip("capability off: one group")
        return MpiWorlds(component, settings)


def skip_unserved(operation: str, *, served: bool) -> None:
    """Skip a test of an operation that the component leaves to others."""
    if not served:
        pytest.skip(f"capability off: {operation}")
