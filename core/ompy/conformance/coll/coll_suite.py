"""What every suite for coll components has."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import pytest

from ompy.conformance.component_kit import ComponentSuite
from ompy.conformance.mpi_worlds import MpiWorlds, Rank
from ompy.conformance.registries import Settings
from ompy.frameworks.coll import OPERATIONS, CollComponent
from ompy.mca.component import Component


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


def skip_unless_served(worlds: MpiWorlds, operation: str) -> None:
    """Skip a test at once where no communicator that is tried has the operation of it."""
    settings = tuple(sorted(worlds.settings.items()))
    skip_unserved(operation, served=operation in served_operations(worlds.component, settings))


@cache
def served_operations(
    component: Component, settings: tuple[tuple[str, object], ...]
) -> frozenset[str]:
    """The operations that a component serves in some communicator: of one host, of several."""
    found = set[str]()

    def program(rank: Rank) -> None:
        for name in OPERATIONS:
            if rank.serves(name) or rank.serves(name, blocking=False):
                found.add(name)

    worlds = MpiWorlds(component, dict(settings))
    for hosts in ((0,), (0, 0, 0), (0, 1, 2), (0, 0, 1, 1)):
        worlds.play(program, len(hosts), hosts=hosts)
    return frozenset(found)
