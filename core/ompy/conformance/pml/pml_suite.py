"""What every suite for PML components has."""

from __future__ import annotations

from typing import ClassVar

import pytest

from ompy.conformance.component_kit import ComponentSuite
from ompy.conformance.mpi_worlds import MpiWorlds
from ompy.conformance.registries import Settings
from ompy.frameworks.pml import PmlComponent, PmlWrapperComponent


class PmlSuite(ComponentSuite):
    """Base of the suites for PML components, those that wrap another PML among them."""

    framework: ClassVar[str] = "pml"

    @pytest.fixture
    def worlds(
        self, component: PmlComponent | PmlWrapperComponent, settings: Settings
    ) -> PmlWorlds:
        """What makes the worlds of a test."""
        return PmlWorlds(component, settings)


class PmlWorlds(MpiWorlds):
    """Worlds that have a PML, or a wrapper around ob1."""

    @property
    def wraps(self) -> bool:
        """Whether the component is a wrapper."""
        return isinstance(self.component, PmlWrapperComponent)

    def chosen(self) -> dict[str, object]:
        """The PML by its name; a wrapper beside the PML that it wraps."""
        name = self.component.name
        return {**super().chosen(), "pml": f"ob1,{name}" if self.wraps else name}
