from __future__ import annotations

import sys

import pytest
from ompy.mca.errors import ComponentError, UsageError
from ompy.mca.hooks import hook_caller

WATCHER = """
import fake_events
from ompy.mca.hookspecs import hookimpl

@hookimpl
def ompy_job_launching(job): fake_events.EVENTS.append(("launching", job))

@hookimpl
def ompy_job_finished(exit_code): fake_events.EVENTS.append(("finished", exit_code))

@hookimpl
def ompy_rank_started(rank, size): fake_events.EVENTS.append(("started", rank, size))

@hookimpl
def ompy_rank_finalizing(rank): fake_events.EVENTS.append(("finalizing", rank))
"""

STATES = """
import fake_events
from ompy.mca.hookspecs import hookimpl

@hookimpl
def ompy_component_state(record):
    if record.framework == "wire":
        fake_events.EVENTS.append((record.name, record.state.value))
"""

RAISES = """
from ompy.mca.hookspecs import hookimpl

@hookimpl
def ompy_rank_started(rank): raise ValueError("stumbled")

@hookimpl
def ompy_rank_finalizing(rank): raise AssertionError("called again")
"""


def package(site, name: str, source: str) -> str:
    module = f"fake_hooks_{name}"
    site.write_module(module, source)
    site.distribution(f"ompy-hooks-{name}", {"ompy.hooks": {name: module}})
    return module


def test_without_packages_nothing_is_called_or_imported(
    site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "ompy.mca.hookspecs", raising=False)
    hooks = hook_caller(site.registry())
    hooks.ompy_rank_started(rank=0, size=1)
    hooks.ompy_job_finished(0)
    assert not hooks.active
    assert "ompy.mca.hookspecs" not in sys.modules


def test_every_hook_reaches_every_package(site) -> None:
    package(site, "one", WATCHER)
    package(site, "two", WATCHER)
    hooks = hook_caller(site.registry())
    assert hooks.active
    hooks.ompy_job_launching("job")
    hooks.ompy_rank_started(3, 4)
    hooks.ompy_rank_finalizing(rank=3)
    hooks.ompy_job_finished(exit_code=17)
    events = [("launching", "job"), ("started", 3, 4), ("finalizing", 3), ("finished", 17)]
    assert site.events == [event for event in events for _ in range(2)]


def test_two_packages_may_use_one_name(site) -> None:
    site.write_module("fake_hooks_same", WATCHER)
    site.distribution("first", {"ompy.hooks": {"same": "fake_hooks_same"}})
    site.distribution("second", {"ompy.hooks": {"same": "fake_hooks_same"}})
    hook_caller(site.registry()).ompy_job_finished(0)
    assert site.events == [("finished", 0), ("finished", 0)]


def test_component_states_are_told_present_and_future(site) -> None:
    site.component("a")
    site.component("b")
    package(site, "states", STATES)
    registry = site.registry(("wire", "^b"))
    hook_caller(registry)
    site_events = site.events
    assert site_events == [("a", "found"), ("b", "blocked")]
    (component,) = registry.open("wire")
    registry.select(component)
    assert [event for event in site_events[2:] if event[0] == "a"] == [
        ("a", "loaded"),
        ("a", "opened"),
        ("a", "selected"),
    ]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError"),
        (WATCHER + "\n@hookimpl\ndef ompy_no_such_hook(): ...\n", "PluginValidationError: unknown"),
        (WATCHER.replace("(exit_code)", "(exit_kode)"), "PluginValidationError: Plugin"),
    ],
)
def test_a_package_that_is_wrong_is_left_out(site, source: str, reason: str) -> None:
    package(site, "bad", source)
    package(site, "good", WATCHER)
    registry = site.registry()
    hook_caller(registry).ompy_job_finished(0)
    assert site.events == [("finished", 0)]
    bad, good = registry.records_of("hooks")
    assert (bad.state.value, good.state.value) == ("broken", "loaded")
    assert bad.reason.startswith(reason)
    with pytest.raises(ComponentError, match=r"hooks:bad .asked for by --mca hooks bad,good"):
        hook_caller(site.registry(("hooks", "bad,good")))


def test_a_hook_that_raises_is_told_and_not_called_again(
    site, capsys: pytest.CaptureFixture[str]
) -> None:
    package(site, "bad", RAISES)
    package(site, "good", WATCHER)
    registry = site.registry(("hooks", "bad,good"))
    hooks = hook_caller(registry)
    hooks.ompy_rank_started(0, 1)
    hooks.ompy_rank_finalizing(0)
    assert site.events == [("started", 0, 1), ("finalizing", 0)]
    assert capsys.readouterr().err == (
        "ompy: hooks:bad of ompy-hooks-bad 1.0: ompy_rank_started raised ValueError: stumbled; "
        "its hooks are not called any more\n"
    )
    record = registry.records_of("hooks")[0]
    assert record.state.value == "broken"
    assert "stumbled" in record.traceback


def test_packages_can_be_excluded_before_they_are_imported(site) -> None:
    module = package(site, "bad", "raise RuntimeError")
    package(site, "good", WATCHER)
    registry = site.registry(("hooks", "^bad"))
    registry.check_settings()
    hook_caller(registry).ompy_job_finished(0)
    assert site.events == [("finished", 0)]
    assert module not in sys.modules
    assert not hook_caller(site.registry(("hooks", "^bad,good"))).active


def test_a_package_asked_for_has_to_exist(site) -> None:
    package(site, "good", WATCHER)
    registry = site.registry(("hooks", "god"))
    for call in (registry.check_settings, lambda: hook_caller(registry)):
        with pytest.raises(UsageError, match="there is no hooks component god; did you mean good"):
            call()
