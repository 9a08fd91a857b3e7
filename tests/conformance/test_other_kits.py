"""The kits for coll, pml, osc, nic and hooks on components of ours, and what `ompy new` writes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ompy.cli.new.distribution import rendered, words_for
from ompy.cli.new.kinds import KINDS
from ompy.conformance.card import Card
from ompy.conformance.hooks.hook_suite import HookPackage
from ompy.conformance.plugin import FAILED, PASSED, SKIPPED, examine
from ompy_components.coll.basic.component import COMPONENT as BASIC
from ompy_components.coll.sm.component import COMPONENT as COLL_SM
from ompy_components.coll.tuned.component import COMPONENT as TUNED
from ompy_components.nic.gni.component import COMPONENT as GNI
from ompy_components.nic.hca.component import COMPONENT as HCA
from ompy_components.nic.libfabric.component import COMPONENT as LIBFABRIC
from ompy_components.nic.ofi_emulated.component import COMPONENT as FABRIC
from ompy_components.nic.vic.component import COMPONENT as VIC
from ompy_components.osc.pt2pt.component import COMPONENT as PT2PT
from ompy_components.osc.rdma.component import COMPONENT as RDMA
from ompy_components.osc.sm.component import COMPONENT as OSC_SM
from ompy_components.pml.bfo.component import COMPONENT as BFO
from ompy_components.pml.ob1.component import COMPONENT as OB1

from tests.support.effort import THOROUGH

OURS = (BASIC, COLL_SM, TUNED, HCA, VIC, FABRIC, GNI, PT2PT, RDMA, OSC_SM, BFO, OB1)
NAME = "mine"
SETTINGS = {"pml": {"pml_mine_enable": "true"}}
# in CI a few tests of each kit; tools/nightly.py has all of them
FEW = {
    "btl": ["test_names", "test_defaults_are_valid", "test_bad_wire_is_hidden[seed0-drop]"],
    "coll": ["test_names", "test_defaults_are_valid", "test_nonblocking[allgather]"],
    "hook": [],
    "nic": [],
    "osc": ["test_names", "test_places", "test_groups[seed0-created-several hosts]"],
    "pml": ["test_names", "test_is_used", "test_truncation", "test_ranks_without_it"],
}


@pytest.mark.skipif(not THOROUGH, reason="a minute: tools/nightly.py does it")
@pytest.mark.parametrize("component", OURS, ids=lambda one: f"{one.framework}-{one.name}")
def test_ours(component: Any) -> None:
    """All of ours conform; the card's words say what each leaves to others."""
    settings = {"pml": "ob1"} if component.framework != "pml" else {}
    outcomes = examine(component, settings)
    assert [(one.test, one.reason) for one in outcomes if one.result == FAILED] == []
    assert sum(one.result == PASSED for one in outcomes) > 5


@pytest.fixture
def module(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ModuleType]:
    """The module of a template, as it is written."""
    kind = KINDS[request.param]
    words, files = words_for(kind, NAME), rendered(kind, NAME)
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    sys.path.insert(0, str(tmp_path))
    name = f"{words['package']}.{kind.module}"
    yield importlib.import_module(name)
    sys.path.remove(str(tmp_path))
    for known in [each for each in sys.modules if each.partition(".")[0] == words["package"]]:
        del sys.modules[known]


@pytest.mark.parametrize("module", sorted(KINDS), indirect=True)
def test_what_is_written_conforms(module: ModuleType, request: pytest.FixtureRequest) -> None:
    kind = KINDS[request.node.callspec.params["module"]]
    subject = getattr(module, "COMPONENT", None) or HookPackage(module, NAME)
    tests = [] if THOROUGH else FEW[kind.name]
    outcomes = examine(subject, SETTINGS.get(kind.name, {}), tests=tests)
    assert [(one.test, one.reason) for one in outcomes if one.result == FAILED] == []
    assert sum(one.result == PASSED for one in outcomes) >= max(3, len(tests))


def test_what_a_virtual_world_does_not_have_is_not_judged() -> None:
    """The real libfabric: its names are, and the card says what is not and why."""
    outcomes = examine(LIBFABRIC, {}, tests=["test_names", "test_devices", "test_under_ofi[1]"])
    assert [one.result for one in outcomes if one.test == "test_names"] == [PASSED]
    said = {one.reason for one in outcomes if one.result == SKIPPED}
    assert said == {"not judged: a virtual world has no libfabric"}
    text = "\n".join(Card(LIBFABRIC, {}, outcomes).lines())
    assert "as far as it was judged" in text
