"""Strict plug-ins, and who is told what of components that failed."""

from __future__ import annotations

import json

import pytest
from ompy.mca.errors import ComponentError, ComponentsFailed, UsageError
from ompy.mca.hooks import hook_caller
from ompy.mca.parameters.settings import STRICT_PLUGINS, gather_settings
from ompy.mca.registry import Registry

STRICT = (STRICT_PLUGINS, "1")


def bad(site) -> None:
    site.broken("awful", "import no_such_module_anywhere")
    site.component("good")
    site.component("good", distribution="zzz")
    site.component("raises", on_open="raise ValueError('no luck')")


def failures(call) -> list[str]:
    with pytest.raises(ComponentsFailed) as caught:
        call()
    assert caught.value.exit_code == 1
    return [problem.partition("\n")[0] for problem in caught.value.problems]


AWFUL = (
    "component wire:awful of ompy-wire-awful 1.0: broken (ModuleNotFoundError: No module named "
    "'no_such_module_anywhere'), which --strict-plugins does not allow"
)
TWICE = (
    "component wire:good of zzz 1.0: shadowed (ompy-wire-good 1.0 offers it too and comes first), "
    "which --strict-plugins does not allow"
)
RAISES = (
    "component wire:raises of ompy-wire-raises 1.0: open-failed (ValueError: no luck), which "
    "--strict-plugins does not allow"
)


def test_the_check_imports_all_and_names_all(site) -> None:
    bad(site)
    with pytest.raises(ComponentsFailed) as caught:
        site.registry(STRICT).check_settings()
    awful, twice = caught.value.problems
    assert awful.startswith(f"{AWFUL}\nTraceback (most recent call last):\n")
    assert awful.endswith("ModuleNotFoundError: No module named 'no_such_module_anywhere'")
    assert twice == TWICE


def test_what_fails_on_opening_is_known_afterwards(site) -> None:
    bad(site)
    registry = site.registry(STRICT, ("wire", "^awful"))
    registry.open("wire")
    assert failures(registry.insist) == [RAISES, TWICE]


def test_settings_that_are_wrong_come_first(site) -> None:
    bad(site)
    with pytest.raises(UsageError) as caught:
        site.registry(STRICT, ("nonsense", "1")).check_settings()
    assert caught.value.exit_code == 2
    first, second, third = (problem.partition("\n")[0] for problem in caught.value.problems)
    assert first == "--mca nonsense 1: there is no parameter nonsense"
    assert (second, third) == (AWFUL, TWICE)


@pytest.mark.parametrize("raw", ["0", "no"])
def test_without_it_nothing_is_imported_or_demanded(site, raw: str) -> None:
    bad(site)
    registry = site.registry((STRICT_PLUGINS, raw))
    registry.check_settings()
    registry.open("wire")
    registry.insist()
    assert site.registry().variable(STRICT_PLUGINS).value is False


def test_it_goes_with_the_snapshot(site, catalog) -> None:
    bad(site)
    snapshot = site.registry(STRICT, ("wire", "good,raises")).snapshot
    assert failures(snapshot) == [TWICE]
    snapshot = site.registry(STRICT, ("wire", "raises")).snapshot()
    registry = Registry.from_snapshot(catalog, json.loads(json.dumps(snapshot)))
    with pytest.raises(ComponentError):
        registry.open("wire")
    assert failures(registry.insist) == [RAISES]


def test_its_spellings() -> None:
    def origin(pairs, environ) -> list[tuple[str, str]]:
        found = gather_settings(pairs, environ, files=[])
        return [(setting.raw, setting.origin.detail) for setting in found]

    assert origin([STRICT], {}) == [("1", "--strict-plugins")]
    assert origin([(STRICT_PLUGINS, "yes")], {}) == [("yes", f"--mca {STRICT_PLUGINS} yes")]
    assert origin([], {"OMPY_STRICT_PLUGINS": "1"}) == [("1", "OMPY_STRICT_PLUGINS")]
    assert origin([], {"OMPY_STRICT_PLUGINS": ""}) == []
    both = {"OMPY_STRICT_PLUGINS": "1", f"OMPY_MCA_{STRICT_PLUGINS}": "0"}
    assert [raw for raw, _ in origin([], both)] == ["0", "1"]


def test_a_warning_is_told_once_even_across_processes(site, catalog) -> None:
    bad(site)
    launcher = site.registry()
    told: list[str] = []
    launcher.tell_warnings(told.append)
    assert [text.partition(":")[2].split()[0] for text in told] == ["good"]
    snapshot = json.loads(json.dumps(launcher.snapshot()))
    rank = Registry.from_snapshot(catalog, snapshot)
    rank.open("wire")
    told.clear()
    rank.tell_warnings(told.append)
    rank.tell_warnings(told.append)
    assert [text.partition(":")[2].split()[0] for text in told] == ["awful", "raises"]
    assert told[0].endswith("; ompy-info --why wire:awful tells more")


def test_a_component_that_fails_when_it_is_put_to_work(site, states_of) -> None:
    for name in ("a", "b"):
        site.component(name)
    registry = site.registry(("wire", "^c"))
    a, b = registry.open("wire")
    assert not registry.is_in_tree(a)
    registry.select(b)
    for component in (a, b):
        registry.fail(component, "init", LookupError("fell"))
    for change in (registry.select, lambda c: registry.refuse(c, "x")):
        change(a)  # another rank of this process had more luck, or less
    registry.pass_over(b, "x")
    assert states_of(registry) == {"a": "open-failed", "b": "open-failed"}
    assert [record.reason for record in registry.records] == ["init raised LookupError: fell"] * 2
    asked = site.registry(("wire", "a"))
    (component,) = asked.open("wire")
    with pytest.raises(ComponentError, match=r"wire:a .asked for by --mca wire a.* LookupError"):
        asked.fail(component, "init", LookupError("fell"))


def test_a_hook_that_raises_where_nobody_tells(site, capsys: pytest.CaptureFixture[str]) -> None:
    source = (
        "from ompy.mca.hookspecs import hookimpl\n"
        "@hookimpl\ndef ompy_rank_started(rank): raise SystemExit(7)\n"
    )
    site.write_module("fake_hooks_bad", source)
    site.distribution("ompy-hooks-bad", {"ompy.hooks": {"bad": "fake_hooks_bad"}})
    for tell in (False, True):
        registry = site.registry(STRICT)
        hook_caller(registry, tell=tell).ompy_rank_started(3, 4)
        said = capsys.readouterr().err
        assert ("ompy_rank_started raised SystemExit: 7" in said) == tell
        (problem,) = failures(registry.insist)
        assert "hooks:bad of ompy-hooks-bad 1.0: broken (ompy_rank_started raised" in problem
        told: list[str] = []
        registry.tell_warnings(told.append)
        assert len(told) == (not tell), "what was told when it happened is not told again"


def test_ours_keep_their_parameters_whoever_is_asked_first(site) -> None:
    one = '(Parameter("{}", "int", 1, "Help.", level=1),)'
    site.component("a", distribution="ompy", version="99", parameters=one.format("x"))
    thief = '(Parameter("y", "int", 1, "Help.", level=1, synonyms=(Synonym("wire_a_x"),)),)'
    site.component("thief", distribution="another", parameters=thief)
    registry = site.registry(("wire_thief_y", "5"))
    registry.check_settings()
    assert [(r.name, r.state.value) for r in registry.records] == [
        ("a", "loaded"),
        ("thief", "incompatible"),
    ]
    assert registry.records[1].reason == "its parameter wire_a_x is already one of wire:a"


def test_an_exception_that_cannot_be_shown(site) -> None:
    site.broken(
        "shy",
        "class Shy(Exception):\n"
        "    def __str__(self): raise RuntimeError('nobody may know')\n"
        "raise Shy()",
    )
    (record,) = site.registry().load("wire")
    assert (record.state.value, record.reason) == ("broken", "Shy")
    assert "raise Shy()" in record.traceback


def test_a_declaration_that_is_refused_shows_the_strangers_line_only(site) -> None:
    parameters = '(Parameter("x", "complex", 1, "Help.", level=1),)'
    site.component("odd", parameters=parameters)
    (record,) = site.registry().load("wire")
    assert record.state.value == "incompatible"
    assert record.reason.startswith("its parameter x: there is no type complex; there are ")
    assert parameters[1:-2] in record.traceback
    assert "ompy/mca" not in record.traceback


def test_a_name_that_is_none_is_told_unless_it_is_excluded(site, states_of) -> None:
    site.broken("not-a-name", "raise SystemExit('imported')")
    registry = site.registry()
    assert states_of(registry) == {"not-a-name": "incompatible"}
    assert registry.open("wire") == []
    assert states_of(site.registry(("wire", "^not-a-name"))) == {"not-a-name": "blocked"}
