"""What every kit has, whatever its framework: fixtures, seeds, failures that are expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from ompy.conformance.registries import Settings
from ompy.frameworks.catalog import CATALOG
from ompy.mca.groups import FrameworkInfo


class ComponentSuite:
    """Base of all suites, and so of an author's test class.

    Attributes:
        framework: whose components it judges.
        title: of the suite, for the card.
        seeds: of tests that run in several worlds.
    """

    framework: ClassVar[str] = ""
    title: ClassVar[str] = ""
    seeds: ClassVar[Sequence[int]] = range(2)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run what asks for a seed once for each."""
        if "seed" in metafunc.fixturenames:
            seeds = metafunc.config.getoption("ompy_seeds", None) or self.seeds
            metafunc.parametrize("seed", seeds, ids=lambda seed: f"seed{seed}")

    @pytest.fixture
    def component(self) -> Any:
        """The component under test; every test class has its own."""
        pytest.fail(
            "no component: give the test class a fixture `component` that returns the object "
            "its entry point names",
            pytrace=False,
        )

    @pytest.fixture
    def settings(self) -> Settings:
        """Parameters by full name, for every world."""
        return {}

    @pytest.fixture(autouse=True)
    def _conditions(self, request: pytest.FixtureRequest, component: Any) -> None:
        """Refuse what is no such component, or expect a failure."""
        refuse_or_expect(request, component, self.why_untestable(component))

    def why_untestable(self, component: object) -> str:
        """Why a component cannot be tested at all; empty when it can."""
        contracts = framework_info(self.framework).contracts
        if isinstance(component, contracts):
            return ""
        names = " or ".join(contract.__name__ for contract in contracts)
        return f"the fixture `component` returns {component!r}, which is no {names}"


def framework_info(name: str) -> FrameworkInfo:
    """What the catalog says of a framework."""
    return next(info for info in CATALOG if info.name == name)


def refuse_or_expect(request: pytest.FixtureRequest, component: object, problem: str) -> None:
    """Fail a test whose component cannot be tested; mark one that is expected to fail."""
    if problem:
        pytest.fail(problem, pytrace=False)
    reason = expected_failure(component, request.node)
    if reason is None:
        return
    if not reason.strip():
        pytest.fail("an expected failure needs a reason", pytrace=False)
    request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def expected_failures(component: object) -> Mapping[str, str]:
    """The tests that a component is known to fail, each with the reason."""
    known: Mapping[str, str] = getattr(component, "expected_failures", {})
    return known


def expected_failure(component: object, node: pytest.Item) -> str | None:
    """The reason for which a test is expected to fail, or None."""
    known = expected_failures(component)
    for name in (node.name, getattr(node, "originalname", node.name)):
        if name in known:
            return known[name]
    return None


def suite_of_test(test_class: type, name: str) -> type:
    """The class a test was written in: a suite, or the author's own."""
    return next(base for base in test_class.__mro__ if name in base.__dict__)
