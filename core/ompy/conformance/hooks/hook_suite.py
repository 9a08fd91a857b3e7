"""What every suite for hooks has: the package under test, and the one who calls it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

import pluggy
import pytest

from ompy.conformance.component_kit import ComponentSuite
from ompy.conformance.registries import Settings, registry_with
from ompy.frameworks.job import App, Job, Placement
from ompy.mca.component import ApiVersion
from ompy.mca.groups import HOOKS
from ompy.mca.hooks import HookCaller, hook_caller
from ompy.mca.hookspecs import PROJECT, LifeCycle
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.registry import Registry
from ompy.mca.reporting import Finding
from ompy.runtime.rails.rail_report import FIELDS

NAMELESS: Final = "under_test"
HOOK_NAMES: Final = tuple(name for name in vars(LifeCycle) if name.startswith("ompy_"))


class HookPackage(NamedTuple):
    """A package of hooks, as the entry point of an installed distribution offers it.

    Attributes:
        plugin: what the entry point names.
        name: of the entry point.
        version: of the distribution.
        framework: `hooks`.
        api: version of the hooks' contract.
    """

    plugin: object
    name: str = NAMELESS
    version: str = "0"
    framework: str = HOOKS.name
    api: ApiVersion = HOOKS.api or (1, 0)


class HookSuite(ComponentSuite):
    """Base of the suites for hooks. The fixture `component` gives what the entry point names."""

    framework: ClassVar[str] = HOOKS.name

    def why_untestable(self, component: object) -> str:
        """Why there is nothing to test; empty when there is."""
        if hooks_of(package_of(component)):
            return ""
        return (
            f"{component!r} has no hooks: mark functions with hookimpl of ompy.mca.hookspecs; "
            f"their names are {', '.join(HOOK_NAMES)}"
        )

    @pytest.fixture
    def variables(self) -> Mapping[str, str]:
        """Variables of the environment that the package wants, such as where it writes."""
        return {}

    @pytest.fixture
    def called(
        self,
        component: object,
        settings: Settings,
        variables: Mapping[str, str],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> Iterator[Called]:
        """The package, loaded as a launcher loads it, in an empty folder."""
        monkeypatch.chdir(tmp_path)
        for name, text in variables.items():
            monkeypatch.setenv(name, text)
        package = package_of(component)
        about = package.framework, package.name, package.version
        registry = registry_with(*about, package.plugin, {HOOKS.name: package.name, **settings})
        yield Called(registry, hook_caller(registry, tell=False), variables)
        registry.close()


class Called(NamedTuple):
    """The package as it is called.

    Attributes:
        registry: that has it.
        hooks: calls what it has.
        variables: of the environment that it wants.
    """

    registry: Registry
    hooks: HookCaller
    variables: Mapping[str, str]

    @property
    def record(self) -> ComponentRecord:
        """What became of it."""
        return next(iter(self.registry.records_of(HOOKS.name)))

    def verify(self) -> None:
        """See that none of its hooks has raised.

        Raises:
            AssertionError: one has, and is not called any more.
        """
        record = self.record
        assert not record.traceback, f"{record.reason}\n{record.traceback}"


def package_of(component: object) -> HookPackage:
    """The package of what a fixture returns."""
    return component if isinstance(component, HookPackage) else HookPackage(component)


def hooks_of(package: HookPackage) -> list[str]:
    """The hooks of ours that it has."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(LifeCycle)
    try:
        manager.register(package.plugin)
    except pluggy.PluginValidationError:
        return list(HOOK_NAMES)  # what is wrong is another test's to say
    callers = manager.get_hookcallers(manager.get_plugin(manager.get_name(package.plugin) or ""))
    return [caller.name for caller in callers or ()]


def a_job(ranks: int) -> Job:
    """A job of two hosts, as a launcher has placed it."""
    placements = tuple(Placement(rank, 0, rank % 2, rank // 2) for rank in range(ranks))
    app = App(("python", "solve.py", "--steps", "3"), ranks)
    return Job("00112233445566ff", (app,), ("node1", "node2"), placements)


def a_rail(*, healed: bool, last: bool = False) -> Mapping[str, Any]:
    """What is told of a rail that broke; it cannot be written to."""
    values = (0, 1, "tcp, eth0", "the network is down", 5_000_000, 2, 70_000, 400_000)
    event = dict(zip(FIELDS, (*values, 9_000_000 if healed else 0, 100, last), strict=True))
    return MappingProxyType(event)


def findings() -> list[Finding]:
    """What a job's user may be told: of every level, with and without text and fields."""
    return [
        Finding("rails", "rails broke 2 times\n  rank 0 to 1\n", "warning", {"broke": 2}),
        Finding("job failed", "Rank 1 ended with exit code 3.\n", "error"),
        Finding("messages", ""),
    ]


def a_life(hooks: HookCaller, code: int, ranks: int = 4) -> None:
    """All that a launcher says of a job, in its order."""
    hooks.ompy_job_launching(a_job(ranks))
    hooks.ompy_rail_lost(a_rail(healed=False))
    hooks.ompy_rail_healed(a_rail(healed=True))
    hooks.ompy_rail_lost(a_rail(healed=False, last=True))
    for finding in findings():
        hooks.ompy_finding(finding)
    hooks.ompy_job_finished(code)


@contextmanager
def nothing_changes(what: Callable[[], Mapping[str, object]]) -> Iterator[None]:
    """What these say is the same before and after.

    Raises:
        AssertionError: something has changed; the text names it.
    """
    before = what()
    yield
    after = what()
    changed = [name for name, value in before.items() if after[name] != value]
    assert not changed, f"the hooks have changed {', '.join(changed)} of the launcher's process"


def standard_handlers() -> tuple[object, ...]:
    """What the process does with the signals that launchers care for."""
    return tuple(signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD))


def streams() -> tuple[object, ...]:
    """The standard streams, and what is called when nobody catches an exception."""
    return sys.stdout, sys.stderr, sys.excepthook
