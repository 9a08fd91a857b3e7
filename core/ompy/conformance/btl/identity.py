"""Identity and parameters: what a BTL says about itself before anything runs."""

from __future__ import annotations

from typing import ClassVar, Final

from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Suite, Worlds
from ompy.conformance.component_identity import ComponentIdentitySuite
from ompy.frameworks.btl import PUT, SEND, BtlComponent, BtlModule

COMMON: Final = (
    "exclusivity",
    "eager_limit",
    "rndv_eager_limit",
    "max_send_size",
    "latency",
    "bandwidth",
)  # reference openmpi.md 3.12
EXCLUSIVITY_MAX: Final = 65536  # reference openmpi.md 3.11
HANDLE_MAX: Final = 256  # bytes; reference openmpi.md 3.11


class IdentitySuite(ComponentIdentitySuite, Suite):
    """Name, versions, parameters, limits."""

    title: ClassVar[str] = "identity"

    def test_common_parameters(self, component: BtlComponent) -> None:
        """It has the parameters every BTL has."""
        names = {parameter.name for parameter in component.parameters}
        assert not set(COMMON) - names, "see ompy.frameworks.btl_base.btl_parameters"

    def test_common_parameters_take_effect(self, worlds: Worlds) -> None:
        """What is set for the limits and metrics is what the modules have."""
        given = {"exclusivity": 77, "latency": 13}
        defaults = {p.name: p.default for p in worlds.component.parameters}
        for name in ("eager_limit", "rndv_eager_limit", "max_send_size"):
            default = defaults[name]
            assert isinstance(default, int)
            given[name] = default * 3 // 4
        prefix = f"btl_{worlds.component.name}_"

        def program(driver: Driver) -> None:
            assert driver.modules
            for module in driver.modules:
                found = {name: getattr(module, name) for name in given}
                assert found == given

        worlds.make(settings={prefix + name: value for name, value in given.items()}).run(program)

    def test_limits_fit_together(self, worlds: Worlds) -> None:
        """The modules' limits, metrics and flags make sense."""

        def program(driver: Driver) -> None:
            assert driver.modules, driver.unavailable or "a job of several ranks has no module"
            for module in driver.modules:
                _check_limits(module, worlds.component.name)

        worlds.make().run(program)


def _check_limits(module: BtlModule, name: str) -> None:
    assert module.name == name
    assert module.flags & SEND, "every BTL sends"
    assert 0 < module.eager_limit <= module.max_send_size
    assert module.rndv_eager_limit >= 0
    assert 0 <= module.exclusivity <= EXCLUSIVITY_MAX
    assert module.latency >= 0
    assert module.bandwidth >= 0
    assert 0 <= module.registration_handle_size <= HANDLE_MAX
    if module.flags & PUT:
        assert module.put_limit > 0
        assert module.put_alignment > 0
    assert module.get_alignment > 0
