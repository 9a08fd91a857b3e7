"""What every suite for BTLs has: its worlds, and what is skipped."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import pytest

from ompy.conformance.btl.btl_worlds import World
from ompy.conformance.btl.driver import Driver
from ompy.conformance.component_kit import ComponentSuite, refuse_or_expect, suite_of_test
from ompy.conformance.registries import Settings
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


class Suite(ComponentSuite):
    """Base of the suites for BTLs.

    Attributes:
        needs: capabilities that all its tests need.
    """

    framework: ClassVar[str] = "btl"
    needs: ClassVar[tuple[str, ...]] = ()

    @pytest.fixture
    def worlds(self, component: BtlComponent, settings: Settings) -> Worlds:
        """What makes the worlds of a test."""
        return Worlds(component, settings)

    @pytest.fixture(autouse=True)
    def _conditions(self, request: pytest.FixtureRequest, component: BtlComponent) -> None:
        """Refuse, skip, or expect a failure."""
        refuse_or_expect(request, component, why_untestable(component))
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
