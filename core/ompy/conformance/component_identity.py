"""What a component of any framework says about itself before anything runs."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from typing import ClassVar, Final

import pytest

from ompy.conformance.component_kit import ComponentSuite, expected_failures, framework_info
from ompy.mca.component import Component
from ompy.mca.parameter import INTEGERS, Parameter
from ompy.mca.parameters.validation import parse_value
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.plugins.discovery import scan_entry_points
from ompy.runtime.ranks.environment import OWN_CODE

# what a rank does not load at its start: each costs tens of milliseconds
HEAVY: Final = ("asyncio", "click", "numpy", "pluggy", "pydantic", "pytest", "structlog", "uvloop")
NAME: Final = r"[a-z][a-z0-9_]*"


class ComponentIdentitySuite(ComponentSuite):
    """Name, versions, parameters."""

    title: ClassVar[str] = "identity"

    def test_names(self, component: Component) -> None:
        """Framework, name and versions are what a registry takes."""
        assert component.framework == self.framework
        assert re.fullmatch(NAME, component.name), f"lower case, as in --mca {self.framework} NAME"
        assert component.name != "base", "base stands for the framework"
        assert component.version
        contract = framework_info(self.framework).api
        assert contract is not None, "a framework with components has a contract"
        major, minor = component.api
        assert major == contract[0], f"made for another major version of the {self.framework} API"
        assert minor <= contract[1], f"made for a newer {self.framework} API than this one"

    def test_entry_point(self, component: Component) -> None:
        """The entry point, if it is installed, carries its name and leads to it."""
        found = scan_entry_points(frozenset({self.framework}))
        records = [record for record in found if _object(record) is component]
        if not records:
            pytest.skip("it is not installed")
        led = {(record.framework, record.name) for record in records}
        assert led == {(self.framework, component.name)}

    def test_expected_failures_are_tests(self, component: Component) -> None:
        """Each expected failure names a test and says why."""
        tests = {name for name in dir(type(self)) if name.startswith("test_")}
        for name, reason in expected_failures(component).items():
            assert name.partition("[")[0] in tests, f"there is no test {name}"
            assert reason.strip(), f"the expected failure {name} needs a reason"

    def test_parameters_are_explained(self, component: Component) -> None:
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

    def test_defaults_are_valid(self, component: Component) -> None:
        """Each default is a value the user could have given."""
        problems = [text for parameter in component.parameters if (text := _invalid(parameter))]
        assert not problems, "\n".join(problems)

    def test_import_is_light(self, component: Component) -> None:
        """A rank that imports the component loads nothing that is slow to load."""
        target = importable(component)
        if not target:
            pytest.skip("it cannot be imported by name")
        loaded = loaded_by_import(target.partition(":")[0])
        assert not loaded, f"these are imported at a rank's start: {', '.join(loaded)}"


def loaded_by_import(module: str) -> list[str]:
    """What importing a module loads of `HEAVY`."""
    script = f"import {module}, sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(  # noqa: S603 - this interpreter, our own lines
        [sys.executable, *OWN_CODE, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def importable(component: Component) -> str:
    """`module:attribute` of the component where another interpreter finds it too, or nothing."""
    name = type(component).__module__
    module = sys.modules.get(name)
    if module is None or not importable_module(name):
        return ""
    found = (attribute for attribute, value in vars(module).items() if value is component)
    attribute = next(found, "")
    return f"{name}:{attribute}" if attribute else ""


def importable_module(name: str) -> str:
    """The module's name, if another interpreter finds it by that, or nothing."""
    module = sys.modules.get(name)
    if name == "__main__" or module is None or getattr(module, "__spec__", None) is None:
        return ""
    try:
        return name if importlib.util.find_spec(name) is not None else ""
    except (ImportError, ValueError):
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
