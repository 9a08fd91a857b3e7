"""Identity and parameters: what a component says about itself before anything runs."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from typing import ClassVar, Final

import pytest

from ompy.conformance.driver import Driver
from ompy.conformance.suite import Suite, Worlds
from ompy.frameworks.btl import API, PUT, SEND, BtlComponent, BtlModule
from ompy.mca.component_records import ComponentRecord
from ompy.mca.discovery import scan_entry_points
from ompy.mca.parameter import INTEGERS, Parameter
from ompy.mca.validation import parse_value
from ompy.runtime.environment import OWN_CODE

COMMON: Final = (
    "exclusivity",
    "eager_limit",
    "rndv_eager_limit",
    "max_send_size",
    "latency",
    "bandwidth",
)  # reference openmpi.md 3.12
# what a rank does not load at its start: each costs tens of milliseconds
HEAVY: Final = ("asyncio", "click", "numpy", "pluggy", "pydantic", "pytest", "structlog", "uvloop")
EXCLUSIVITY_MAX: Final = 65536  # reference openmpi.md 3.11
HANDLE_MAX: Final = 256  # bytes; reference openmpi.md 3.11


class IdentitySuite(Suite):
    """Name, versions, parameters, limits."""

    title: ClassVar[str] = "identity"

    def test_names(self, component: BtlComponent) -> None:
        """Framework, name and versions are what a registry takes."""
        assert component.framework == "btl"
        assert re.fullmatch(r"[a-z][a-z0-9_]*", component.name), "lower case, as in --mca btl NAME"
        assert component.name != "base", "base stands for the framework"
        assert component.version
        major, minor = component.api
        assert major == API[0], "made for another major version of the BTL contract"
        assert minor <= API[1], "made for a newer BTL contract than this one"

    def test_entry_point(self, component: BtlComponent) -> None:
        """The entry point, if it is installed, carries its name and leads to it."""
        records = [r for r in scan_entry_points(frozenset({"btl"})) if _object(r) is component]
        if not records:
            pytest.skip("it is not installed")
        assert {(record.framework, record.name) for record in records} == {("btl", component.name)}

    def test_expected_failures_are_tests(self, component: BtlComponent) -> None:
        """Each expected failure names a test and says why."""
        tests = {name for name in dir(type(self)) if name.startswith("test_")}
        for name, reason in component.expected_failures.items():
            assert name.partition("[")[0] in tests, f"there is no test {name}"
            assert reason.strip(), f"the expected failure {name} needs a reason"

    def test_parameters_are_explained(self, component: BtlComponent) -> None:
        """Each parameter has help that is a sentence, and a unit exactly if it is a number."""
        problems = []
        for parameter in component.parameters:
            if len(parameter.help) < 20 or not parameter.help.rstrip().endswith("."):
                problems.append(f"{parameter.name}: the help is no sentence: {parameter.help!r}")
            number = parameter.type in INTEGERS or parameter.type == "double"
            if bool(parameter.unit) != number:
                problems.append(
                    f"{parameter.name}: a number has a unit, a word or switch has none; "
                    f"it is a {parameter.type} and its unit is {parameter.unit!r}"
                )
        assert not problems, "\n".join(problems)

    def test_defaults_are_valid(self, component: BtlComponent) -> None:
        """Each default is a value the user could have given."""
        problems = [text for parameter in component.parameters if (text := _invalid(parameter))]
        assert not problems, "\n".join(problems)

    def test_common_parameters(self, component: BtlComponent) -> None:
        """It has the parameters every BTL has."""
        names = {parameter.name for parameter in component.parameters}
        assert not set(COMMON) - names, "see ompy.frameworks.btl_parameters"

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

    def test_import_is_light(self, component: BtlComponent) -> None:
        """A rank that imports the component loads nothing that is slow to load."""
        target = importable(component)
        if not target:
            pytest.skip("it cannot be imported by name")
        script = (
            f"import {target.partition(':')[0]}, sys\n"
            f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
        )
        done = subprocess.run(  # noqa: S603 - this interpreter, our own lines
            [sys.executable, *OWN_CODE, "-c", script],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=True,
        )
        assert not done.stdout.split(), "these are imported at a rank's start"


def importable(component: BtlComponent) -> str:
    """`module:attribute` of the component where another interpreter finds it too, or nothing."""
    name = type(component).__module__
    module = sys.modules.get(name)
    if name == "__main__" or module is None:
        return ""
    for attribute, value in vars(module).items():
        if value is component and getattr(module, "__spec__", None) is not None:
            try:
                found = importlib.util.find_spec(name)
            except (ImportError, ValueError):
                return ""
            return f"{name}:{attribute}" if found is not None else ""
    return ""


def _object(record: ComponentRecord) -> object:
    module, _, attribute = record.target.partition(":")
    loaded = sys.modules.get(module)  # a component in hand has been imported
    return getattr(loaded, attribute, None)


def _invalid(parameter: Parameter) -> str:
    """What is wrong with a parameter's default, empty if nothing."""
    text = parameter.text(parameter.default)
    try:
        given = parse_value(parameter, text)
    except ValueError as problem:
        return f"{parameter.name}: the default {text!r} could not be set: {problem}"
    default = parameter.default
    if isinstance(default, str):
        default = os.path.expanduser(default)
    if given != default:
        return f"{parameter.name}: the default is {default!r}, set as {text!r} it is {given!r}"
    return ""


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
