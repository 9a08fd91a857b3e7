"""Loading, opening, selecting and closing components, each apart from the others' faults."""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from ompy.mca.component import Component
from ompy.mca.errors import ComponentError, UsageError
from ompy.mca.registry import Registry

PRIORITY = '(Parameter("priority", "int", {}, "Rank.", level=5),)'


def names(components: list[Component]) -> list[str]:
    return [component.name for component in components]


def zoo(site) -> None:
    """One good distribution among those that go wrong in every known way."""
    site.component("good", parameters=PRIORITY.format(5))
    site.broken("import", "import no_such_module_anywhere")
    site.broken("exits", "raise SystemExit(3)")
    site.broken("attribute", "")
    site.broken(
        "class", "from ompy.mca.component import Component\nclass COMPONENT(Component): ..."
    )
    site.broken("other", "COMPONENT = 42")
    site.component("major", api=(4, 0))
    site.component("minor", api=(3, 2))
    site.component("api", api="nonsense")
    site.component("liar", says=("wire", "truth"))
    site.component("stray", says=("match", "stray"))
    site.component("base")
    site.component("twice", parameters='(Parameter("x", "int", 1, "H.", level=1),) * 2')
    site.component("words", parameters='("priority",)')
    site.component("good", distribution="zzz-duplicate")
    site.component("raises", on_open="raise ValueError('no luck')")
    site.component("leaves", on_open="raise SystemExit('bye')")
    site.component("missing", on_open="raise NotAvailable('no such device')")


ZOO_STATES = {
    "good": "opened",
    "import": "broken",
    "exits": "broken",
    "attribute": "broken",
    "class": "incompatible",
    "other": "incompatible",
    "major": "incompatible",
    "minor": "incompatible",
    "api": "incompatible",
    "liar": "incompatible",
    "stray": "incompatible",
    "base": "incompatible",
    "twice": "incompatible",
    "words": "incompatible",
    "raises": "open-failed",
    "leaves": "open-failed",
    "missing": "not-available",
}

ZOO_REASONS = {
    "import": "ModuleNotFoundError: No module named 'no_such_module_anywhere'",
    "exits": "SystemExit: 3",
    "attribute": "AttributeError: module 'fake_broken_attribute' has no attribute 'COMPONENT'",
    "class": "fake_broken_class:COMPONENT is a class; an entry point names an object of it",
    "other": "fake_broken_other:COMPONENT is no ompy component but int",
    "major": "made for wire API 4.0, this is 3.1 (same major, minor not newer)",
    "minor": "made for wire API 3.2, this is 3.1 (same major, minor not newer)",
    "api": "its api is 'nonsense', not (major, minor)",
    "twice": "its parameter x is there twice",
    "words": "its parameters are not Parameter objects: 'priority'",
    "liar": "its entry point says wire:liar, it says wire:truth",
    "stray": "its entry point says wire:stray, it says match:stray",
    "base": "base is no name for a component: it stands for the framework itself",
    "raises": "ValueError: no luck",
    "leaves": "SystemExit: bye",
    "missing": "no such device",
}


def test_no_stranger_stops_the_others(site, states_of) -> None:
    zoo(site)
    registry = site.registry()
    registry.check_settings()
    assert names(registry.open("wire")) == ["good"]
    assert states_of(registry) == ZOO_STATES
    reasons = {record.name: record.reason for record in registry.records_of("wire")}
    assert {name: reasons[name] for name in ZOO_REASONS} == ZOO_REASONS
    duplicate = registry.records_of("wire")[-1]
    assert (duplicate.distribution, duplicate.state.value) == ("zzz-duplicate", "shadowed")
    assert duplicate.reason == "ompy-wire-good 1.0 offers it too and comes first"
    assert "fake_zzz_duplicate_good" not in sys.modules
    warnings = registry.warnings()
    assert len(warnings) == len(ZOO_STATES) - len(["good", "missing"]) + len(["duplicate"])
    assert "wire:raises of ompy-wire-raises 1.0: open-failed (ValueError: no luck)" in warnings


@pytest.mark.parametrize("name", [name for name in ZOO_STATES if name != "good"])
def test_a_component_asked_for_by_name_has_to_work(site, name: str) -> None:
    zoo(site)
    registry = site.registry(("wire", f"good,{name}"))
    with pytest.raises(ComponentError, match=rf"wire:{name} \(asked for by --mca wire ") as caught:
        registry.open("wire")
    assert caught.value.reason == ZOO_REASONS.get(name, caught.value.reason)
    assert caught.value.exit_code == 1
    registry.close()
    opened = {event[1] for event in site.events if event[0] == "open"}
    closed = {event[1] for event in site.events if event[0] == "close"}
    assert opened == closed


@pytest.mark.parametrize("name", ["import", "raises"])
def test_the_error_carries_the_original_traceback(site, name: str) -> None:
    zoo(site)
    with pytest.raises(ComponentError) as caught:
        site.registry(("wire", name)).open("wire")
    source = {"import": "import no_such_module_anywhere", "raises": "raise ValueError('no luck')"}
    assert source[name] in caught.value.traceback
    assert str(caught.value).endswith(caught.value.traceback)
    module = {"import": "fake_broken_import.py", "raises": "fake_ompy_wire_raises_raises.py"}[name]
    assert re.findall(r'File ".*/(\w+\.py)"', caught.value.traceback) == [module]


def test_blocked_components_are_never_imported(site, states_of) -> None:
    modules = {name: site.component(name) for name in ("a", "b", "c")}
    registry = site.registry(("wire", "^a,b"))
    assert names(registry.open("wire")) == ["c"]
    assert states_of(registry) == {"a": "blocked", "b": "blocked", "c": "opened"}
    assert {name for name, module in modules.items() if module in sys.modules} == {"c"}
    assert registry.records_of("wire")[0].reason == "excluded by wire = ^a,b (--mca wire ^a,b)"


def test_a_list_blocks_what_is_not_in_it(site, states_of) -> None:
    for name in ("a", "b"):
        site.component(name)
    registry = site.registry(environ={"OMPY_MCA_wire": " b , b"})
    assert names(registry.open("wire")) == ["b"]
    assert states_of(registry) == {"a": "blocked", "b": "opened"}
    reason = "not in wire =  b , b (environment variable OMPY_MCA_wire)"
    assert registry.records_of("wire")[0].reason == reason


def test_threads_that_open_at_once_get_the_same(site) -> None:
    """As threads of a rank do that make its first windows: one opens, the others wait."""
    slow = "import time; time.sleep(0.02)"
    for name in ("a", "b", "c"):
        site.component(name, on_open=slow, parameters=PRIORITY.format(1))
    registry = site.registry()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: names(registry.open("wire")), range(4)))
    assert found == [["a", "b", "c"]] * 4
    assert len([event for event in site.events if event[0] == "open"]) == 3


def test_opening_with_a_wrong_selection_is_an_error(site) -> None:
    site.component("tcp")
    with pytest.raises(UsageError, match="there is no wire component tpc; did you mean tcp"):
        site.registry(("wire", "tpc")).open("wire")
    with pytest.raises(UsageError, match="negates the whole list"):
        site.registry(("wire", "a,^b")).open("wire")


def test_opening_with_a_bad_value_is_an_error(site) -> None:
    site.component("tcp", parameters=PRIORITY.format(1))
    with pytest.raises(UsageError, match="wire_tcp_priority cannot be 'x'"):
        site.registry(("wire_tcp_priority", "x")).open("wire")


def test_order_is_priority_then_ours_then_name(site) -> None:
    site.component("low", parameters=PRIORITY.format(-5))
    site.component("high", parameters=PRIORITY.format(50))
    site.component("set", parameters=PRIORITY.format(0))
    site.component("none")
    site.component("also_none")
    site.component("ours", distribution="ompy", version="99")
    site.component("odd", parameters='(Parameter("priority", "string", "x", "H.", level=5),)')
    registry = site.registry(("wire_set_priority", "60"))
    expected = ["set", "high", "ours", "also_none", "none", "odd", "low"]
    assert names(registry.open("wire")) == expected
    assert names(registry.open("wire")) == expected
    assert len([event for event in site.events if event[0] == "open"]) == len(expected)


def test_a_component_is_opened_with_its_values(site) -> None:
    site.component("tcp", parameters=PRIORITY.format(7))
    (component,) = site.registry(("wire_tcp_priority", "0x10")).open("wire")
    assert vars(component.values) == {"priority": 16}


def test_close_goes_backwards_and_past_what_raises(site) -> None:
    site.component("a")
    site.component("b", on_close="raise RuntimeError('stuck')")
    site.component("c", framework="match", api=(2, 0))
    registry = site.registry()
    registry.open("wire")
    registry.open("match")
    site.events.clear()
    registry.close()
    registry.close()
    assert site.events == [("close", "c"), ("close", "b"), ("close", "a")]
    record = registry.records_of("wire")[1]
    assert record.reason == "closing it raised RuntimeError: stuck"
    assert "stuck" in record.traceback


@pytest.mark.parametrize("how", ["raise ValueError()", "raise NotAvailable()"])
def test_a_half_way_open_is_rolled_back_once(site, how: str) -> None:
    site.component("a", on_open=how, on_close="raise RuntimeError('never opened')")
    registry = site.registry()
    assert registry.open("wire") == []
    registry.close()
    assert site.events == [("import", "a"), ("open", "a"), ("close", "a")]
    assert registry.records[0].reason in ("ValueError", "no reason given")


def test_select_pass_over_and_refuse_are_recorded(site, states_of) -> None:
    for name in ("a", "b", "c", "d"):
        site.component(name)
    registry = site.registry()
    a, b, c, _ = registry.open("wire")
    registry.select(a)
    registry.pass_over(b, "priority 1, a has 2")
    registry.refuse(c, "no interface")
    assert states_of(registry) == {
        "a": "selected",
        "b": "not-selected",
        "c": "not-available",
        "d": "opened",
    }
    assert [record.reason for record in registry.records] == [
        "",
        "priority 1, a has 2",
        "no interface",
        "",
    ]


def test_ranks_that_share_a_registry_may_differ(site, states_of) -> None:
    site.component("a")
    registry = site.registry()
    (a,) = registry.open("wire")
    registry.refuse(a, "not for rank 0")
    registry.select(a)
    registry.refuse(a, "not for rank 2")
    registry.pass_over(a, "rank 3 has better")
    registry.select(a)
    assert states_of(registry) == {"a": "selected"}


def test_refusing_what_was_asked_for_is_an_error(site, states_of) -> None:
    site.component("a")
    registry = site.registry(("wire", "a"))
    (a,) = registry.open("wire")
    with pytest.raises(
        ComponentError, match=r"wire:a .*--mca wire a.* cannot be used: no interface"
    ):
        registry.refuse(a, "no interface")
    assert states_of(registry) == {"a": "not-available"}


def test_only_opened_components_can_be_selected(site) -> None:
    site.component("a")
    registry = site.registry()
    registry.load("wire")
    component = registry.records[0].component
    assert component is not None
    for call in (registry.select, lambda c: registry.refuse(c, "x")):
        with pytest.raises(ValueError, match="not open in this registry"):
            call(component)


def test_steps_are_told_at_verbosity_component(site, capsys: pytest.CaptureFixture[str]) -> None:
    site.component("a")
    site.component("b", on_open="raise NotAvailable('no such device')")
    site.component("c")
    registry = site.registry(("wire_base_verbose", "component"), ("wire", "^c"))
    registry.open("wire")
    registry.close()
    captured = capsys.readouterr()
    steps = [re.sub(r"^\S+ | pid=\d+", "", line) for line in captured.err.splitlines()]
    assert steps == [
        "mca:wire: c blocked of='ompy-wire-c 1.0' reason='excluded by wire = ^c (--mca wire ^c)'",
        "mca:wire: opening components",
        "mca:wire: a loaded of='ompy-wire-a 1.0'",
        "mca:wire: a opened of='ompy-wire-a 1.0'",
        "mca:wire: b loaded of='ompy-wire-b 1.0'",
        "mca:wire: b not-available of='ompy-wire-b 1.0' reason='no such device'",
        "mca:wire: closing a",
    ]
    assert captured.out == ""


def test_steps_are_told_as_json_where_that_is_wanted(
    site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.component("a")
    registry = site.registry(("wire_base_verbose", "component"), ("mca_base_log_format", "json"))
    registry.speak_for(job="ab12", host="node1", rank=3)
    registry.open("wire")
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in told] == [
        "mca:wire: opening components",
        "mca:wire: a loaded",
        "mca:wire: a opened",
    ]
    assert all((line["job"], line["host"], line["rank"]) == ("ab12", "node1", 3) for line in told)


@pytest.mark.parametrize("verbosity", ["none", "error", "9"])
def test_below_that_nothing_is_told(
    site, capsys: pytest.CaptureFixture[str], verbosity: str
) -> None:
    site.component("a")
    registry = site.registry(("wire_base_verbose", verbosity), ("match_base_verbose", "max"))
    registry.open("wire")
    assert capsys.readouterr().err == ""


def test_a_bad_verbosity_waits_for_the_check(site) -> None:
    site.component("a")
    registry = site.registry(("wire_base_verbose", "loud"))
    assert len(registry.records) == 1
    with pytest.raises(UsageError, match="wire_base_verbose cannot be 'loud'"):
        registry.check_settings()


def test_records_can_be_given(site, catalog) -> None:
    site.component("a")
    found = site.registry().records
    registry = Registry(catalog, [], found)
    assert names(registry.open("wire")) == ["a"]
