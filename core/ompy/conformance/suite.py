"""What every suite has: its fixtures, the seeds, and what is skipped or expected to fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import pytest

from ompy.conformance.btl_worlds import Settings, World
from ompy.conformance.driver import Driver
from ompy.frameworks.btl import (
    ATOMIC_FOPS,
    ATOMIC_OPS,
    FAILOVER_SUPPORT,
    GET,
    PUT,
    BtlComponent,
    BtlModule,
)
from ompy.frameworks.capabilities import Capabilities

if TYPE_CHECKING:
    Test = TypeVar("Test", bound=Callable[..., object])

REACHES: Final = ("self", "host", "network")
WIRES: Final = ("memory", "stream", "datagram")
FLAGS: Final = {
    "put": PUT,
    "get": GET,
    "failover": FAILOVER_SUPPORT,
    "atomics": ATOMIC_FOPS,
    "plain atomics": ATOMIC_OPS,
}
# units of parameters that say how many of something a BTL has; the least of them is a hard test
COUNTS: Final = frozenset(
    {"fragments", "packets", "datagrams", "frames", "descriptors", "slots", "entries", "buffers"}
)


def requires(*names: str) -> Callable[[Test], Test]:
    """Skip the test where one of these capabilities is off.

    They are `ordered`, `reliable`, `checksum`, `heals`, `virtual`; `put`, `get`, `atomics` (those
    that fetch), `plain atomics` (flags of the modules); `failover` (they keep the obligations when
    they are asked to); `peers` (it reaches others than the own rank); `stream`, `datagram` (the
    wire); `wire` (one that can be cut: not memory).
    """

    def mark(test: Test) -> Test:
        test.needs = names  # type: ignore[attr-defined]
        return test

    return mark


class Worlds:
    """Makes worlds that suit one component.

    Attributes:
        component: the BTL.
        settings: parameters by full name, in every world.
    """

    def __init__(self, component: BtlComponent, settings: Settings) -> None:
        self.component = component
        self.settings = settings

    def make(self, ranks: int = 2, *, seed: int = 0, **options: Any) -> World:
        """A world in which every rank reaches every other, or itself if that is all there is.

        Args:
            ranks: how many, where there is more than one.
            seed: of the world.
            options: as for `World`; `settings` are added to the component's.
        """
        reach = self.component.capabilities.reach
        if reach == "self" and "hosts" not in options:
            ranks = 1
        hosts = [0] * ranks if reach == "host" else list(range(ranks))
        options.setdefault("hosts", hosts)
        settings = {**self.settings, **options.pop("settings", {})}
        return World(self.component, ranks, seed=seed, settings=settings, **options)

    @property
    def flags(self) -> int:
        """The flags of its modules, failing over; 0 where a job of two ranks has none."""
        return _flags(self.component, tuple(sorted(self.settings.items())))

    @property
    def scarce(self) -> dict[str, object]:
        """Every count of fragments, packets and the like at its least, but not at none."""
        prefix = f"btl_{self.component.name}_"
        return {
            prefix + parameter.name: max(1, int(parameter.minimum or 0))
            for parameter in self.component.parameters
            if parameter.unit in COUNTS and prefix + parameter.name not in self.settings
        }

    def lacks(self, name: str) -> bool:
        """Whether a capability is off."""
        capabilities = self.component.capabilities
        if name in FLAGS:
            return not self.flags & FLAGS[name]
        if name == "peers":
            return capabilities.reach == "self"
        if name in WIRES:
            return capabilities.wire != name
        if name == "wire":
            return capabilities.wire == "memory"
        return not getattr(capabilities, name)


@cache
def _flags(component: BtlComponent, settings: tuple[tuple[str, object], ...]) -> int:
    found = 0

    def program(driver: Driver) -> None:
        nonlocal found
        for module in driver.modules:
            found |= module.flags & ~FAILOVER_SUPPORT
            if module.begin_failover():
                found |= FAILOVER_SUPPORT

    Worlds(component, dict(settings)).make().run(program)
    return found


class Suite:
    """Base of the suites, and so of an author's test class.

    Attributes:
        title: of the suite, for the card.
        needs: capabilities that all its tests need.
        seeds: of tests that run in several worlds.
    """

    title: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    seeds: ClassVar[Sequence[int]] = range(2)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run what asks for a seed once for each."""
        if "seed" in metafunc.fixturenames:
            seeds = metafunc.config.getoption("ompy_seeds", None) or self.seeds
            metafunc.parametrize("seed", seeds, ids=lambda seed: f"seed{seed}")

    @pytest.fixture
    def component(self) -> BtlComponent:
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

    @pytest.fixture
    def worlds(self, component: BtlComponent, settings: Settings) -> Worlds:
        """What makes the worlds of a test."""
        return Worlds(component, settings)

    @pytest.fixture(autouse=True)
    def _conditions(self, request: pytest.FixtureRequest, component: BtlComponent) -> None:
        """Refuse, skip, or expect a failure."""
        problem = why_untestable(component)
        if problem:
            pytest.fail(problem, pytrace=False)
        reason = expected_failure(component, request.node)
        if reason is not None:
            if not reason.strip():
                pytest.fail("an expected failure needs a reason", pytrace=False)
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))
        if "worlds" not in request.fixturenames:
            return
        if not component.capabilities.virtual:
            pytest.skip("capability off: virtual")
        worlds: Worlds = request.getfixturevalue("worlds")
        own = getattr(request.function, "needs", ())
        for name in (*_needs_of_suite(request), *own):
            if worlds.lacks(name):
                pytest.skip(f"capability off: {name}")


def why_untestable(component: BtlComponent) -> str:
    """Why a component cannot be tested at all; empty when it can."""
    if not isinstance(component, BtlComponent):
        return f"the fixture `component` returns {component!r}, which is no BtlComponent"
    capabilities = getattr(component, "capabilities", None)
    told = (
        "capabilities: ClassVar[Capabilities] = Capabilities(reach=..., wire=...), from "
        "ompy.frameworks.capabilities"
    )
    if not isinstance(capabilities, Capabilities):
        return f"{type(component).__name__} does not say what it promises: give it {told}"
    if capabilities.reach not in REACHES or capabilities.wire not in WIRES:
        return (
            f"{type(component).__name__} has {capabilities}; reach is one of "
            f"{', '.join(REACHES)}, wire one of {', '.join(WIRES)}"
        )
    return ""


def expected_failure(component: BtlComponent, node: pytest.Item) -> str | None:
    """The reason for which a test is expected to fail, or None."""
    known = component.expected_failures
    for name in (node.name, getattr(node, "originalname", node.name)):
        if name in known:
            return known[name]
    return None


def suite_of_test(test_class: type, name: str) -> type:
    """The class a test was written in: a suite, or the author's own."""
    return next(base for base in test_class.__mro__ if name in base.__dict__)


def _needs_of_suite(request: pytest.FixtureRequest) -> tuple[str, ...]:
    written_in = suite_of_test(request.cls, request.function.__name__)
    needs: tuple[str, ...] = written_in.__dict__.get("needs", ())
    return needs


def sizes(module: BtlModule, largest: int = 0) -> list[int]:
    """0, 1, powers of two and every limit, each also more and less by one.

    Args:
        module: whose limits.
        largest: size not to exceed; 0 for `max_send_size`.
    """
    most = largest or module.max_send_size
    edges = {1 << power for power in range(most.bit_length())}
    edges |= {module.eager_limit, module.rndv_eager_limit, module.max_send_size, most}
    around = {edge + step for edge in edges for step in (-1, 0, 1)}
    return sorted(size for size in {0, 1} | around if 0 <= size <= most)
