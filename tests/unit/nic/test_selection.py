"""A rank that needs one kind of NIC leaves the others alone."""

from __future__ import annotations

from typing import Any, cast

import pytest
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import Nic, NicComponent
from ompy.frameworks.nic.datagram import DatagramNic
from ompy.frameworks.nic.verbs import VerbsNic
from ompy.runtime.ranks.nic_selection import find_nics

from tests.support.worlds import registry


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the components whose devices were asked for; none has any."""
    names: list[str] = []

    def devices(self: NicComponent, _context: RankContext) -> list[Nic]:
        names.append(self.name)
        return []

    for component in registry().open("nic"):
        monkeypatch.setattr(type(component), "devices", devices)
    return names


def kinds_of(names: list[str]) -> dict[str, tuple[type[Nic], ...]]:
    """What those components say they have."""
    known = {component.name: component for component in registry().open("nic")}
    return {name: cast("NicComponent", known[name]).kinds for name in names}


@pytest.mark.parametrize("kind", [DatagramNic, VerbsNic])
def test_only_those_that_have_the_kind_are_asked(asked: list[str], kind: type[Any]) -> None:
    find_nics(registry(), cast("RankContext", None), kind)
    assert all(kind in kinds for kinds in kinds_of(asked).values())
    find_nics(registry(), cast("RankContext", None), Nic)
    assert {name for name, kinds in kinds_of(asked).items() if kind in kinds}


def test_only_the_one_named_is_asked(asked: list[str]) -> None:
    find_nics(registry(), cast("RankContext", None), Nic, "hca")
    assert asked == ["hca"]
