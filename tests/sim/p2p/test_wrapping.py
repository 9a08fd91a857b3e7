"""Wrappers of the PML: they see every call, change nothing, and are selected by rule."""

from __future__ import annotations

import sys

import pytest
from ompy.engine.virtual_engine import RankFailed
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.pml import STANDARD
from ompy.mca.errors import ComponentError
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.plugins.discovery import scan_entry_points
from ompy.mca.registry import Registry
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.p2p import programs, wrappers
from tests.sim.p2p.test_both_worlds import ALL

MODULE = wrappers.__name__
NOBODYS = -99  # an internal tag that no collective has here


def registry(*names: str, **settings: object) -> Registry:
    """What is in the tree, and these components of strangers in the framework pml."""
    own = [
        record
        for record in scan_entry_points(frozenset(group.name for group in CATALOG))
        if record.in_tree
    ]
    strangers = [
        ComponentRecord("pml", name, "ompy-pml-stranger", "1.0", f"{MODULE}:{name.upper()}")
        for name in names
    ]
    pairs = [(name, str(value)) for name, value in {"btl": "self,sm", **settings}.items()]
    return Registry(CATALOG, gather_settings(pairs, {}, files=[]), [*own, *strangers])


def run(registry: Registry, program, ranks: int = 2, *, seed: int = 0) -> VirtualJob:
    """Run a program and keep each rank's process in `job.processes`."""
    job = VirtualJob(ranks, registry, seed=seed)
    job.processes = [None] * ranks

    def body(process):
        job.processes[process.context.rank] = process
        program(process)

    job.run(body, trace=True)
    return job


def layers(process) -> list[str]:
    """The PML of a rank from the outside to the inside."""
    found = []
    pml = process.pml
    while isinstance(pml, wrappers.Through):
        found.append(pml.name)
        pml = pml.inner
    return [*found, type(pml).__name__]


def state_of(registry: Registry, name: str) -> tuple[str, str]:
    (record,) = [record for record in registry.records_of("pml") if record.name == name]
    return record.state.value, record.reason


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
@pytest.mark.parametrize("program", ALL)
def test_a_wrapper_changes_nothing(program: str, btl: str) -> None:
    """The same seed gives the same trace, event for event, with and without."""
    body = getattr(programs, program)
    bare = run(registry(btl=btl), body, 3, seed=4)
    wrapped = run(registry("through", "one", btl=btl), body, 3, seed=4)
    assert layers(wrapped.processes[0])[-1] == layers(bare.processes[0])[-1] == "Ob1"
    assert len(layers(wrapped.processes[0])) == 3
    assert [e.line() for e in bare.events()] == [e.line() for e in wrapped.events()]


def test_every_call_of_the_contract_passes_every_wrapper() -> None:
    heard = set()
    for program in ALL:

        def body(process, program=program):
            world = programs.world(process)
            process.pml.explain(world, world.rank, 1, STANDARD, True)
            getattr(programs, program)(process)
            process.pml.waiting()
            process.pml.abandon(world, NOBODYS)
            process.pml.unreceived(world)
            process.pml.pending_receives(world)
            process.pml.resume_receives(world)
            process.pml.who_may_send(world)
            process.pml.revoke(world, NOBODYS)
            process.pml.say_leave()
            process.release(world)

        job = run(registry("one", "two"), body, 3)
        for process in job.processes:
            outer = process.pml
            assert outer.calls == outer.inner.calls, program
            heard |= set(outer.calls)
        # of worlds that come later, of who reads variables, of who asks whether ranks ever go on,
        # of who watches the job
        unheard = {"add_btl", "counted", "messages_to", "need", "traffic"}
    assert heard == set(wrappers.CONTRACT) - wrappers.MADE_OF_OTHERS - unheard


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [
        ({}, ["two", "one", "Ob1"]),  # equal: by name
        ({"pml_one_priority": 5}, ["two", "one", "Ob1"]),
        ({"pml_two_priority": 5}, ["one", "two", "Ob1"]),
        (
            {"pml_one_priority": -5, "pml_ob1_priority": -50, "pml_bfo_priority": -60},
            ["one", "two", "Ob1"],
        ),
        ({"pml_one_priority": 100}, ["two", "one", "Ob1"]),  # no rival of a PML
    ],
)
def test_the_highest_priority_is_closest_to_the_pml(priorities, expected: list[str]) -> None:
    made = registry("one", "two", **priorities)
    job = run(made, programs.ring)
    assert all(layers(process) == expected for process in job.processes)
    assert [state_of(made, name)[0] for name in ("ob1", "one", "two")] == ["selected"] * 3


def test_communicators_know_the_outermost() -> None:
    job = run(registry("one", "two"), programs.world)
    for process in job.processes:
        assert process.pml.name == "two"
        assert process.communicators[0].pml is process.pml


def test_ranks_with_and_without_work_together() -> None:
    """The name that peers compare is that of the PML inside."""
    made = registry("one", pml_one_away="1")
    job = run(made, programs.ring, 3)
    assert [len(layers(process)) for process in job.processes] == [2, 1, 2]
    assert {process.context.pml_name for process in job.processes} == {"ob1"}


def test_not_available_anywhere() -> None:
    made = registry("one", pml_one_away="0+1")
    assert layers(run(made, programs.ring).processes[1]) == ["Ob1"]
    assert state_of(made, "one")[0] == "not-available"
    assert "is not for me" in state_of(made, "one")[1]
    asked = registry("one", pml="ob1,one", pml_one_away="0+1")
    with pytest.raises(RankFailed, match=r"pml:one \(asked for by .*rank [01] is not for me"):
        run(asked, programs.ring)


def test_a_wrapper_that_declines() -> None:
    made = registry("one", "two", pml_one_reason="nothing to do")
    assert layers(run(made, programs.ring).processes[0]) == ["two", "Ob1"]
    assert state_of(made, "one") == ("not-selected", "nothing to do")
    assert state_of(made, "two") == ("selected", "")


def test_to_name_one_that_declines_is_an_error() -> None:
    made = registry("one", pml="ob1,one", pml_one_reason="nothing to do")
    with pytest.raises(RankFailed, match="pml:one .asked for by .*pml.* nothing to do") as caught:
        run(made, programs.ring)
    assert isinstance(caught.value.__cause__, ComponentError)


def test_named_beside_a_pml_it_wraps() -> None:
    made = registry("one", "two", pml="ob1,one")
    assert layers(run(made, programs.ring).processes[0]) == ["one", "Ob1"]
    assert state_of(made, "two")[0] == "blocked"


@pytest.mark.parametrize("reason", ["", "nothing to do"])
def test_to_name_only_a_wrapper_is_an_error(reason: str) -> None:
    made = registry("one", "two", pml="one", pml_one_reason=reason)
    said = r"pml:one \(asked for by .*\) cannot be used: it wraps a PML .* as in ob1,one"
    with pytest.raises(RankFailed, match=said):
        run(made, programs.ring)


def test_without_a_pml_a_wrapper_nobody_asked_for_is_silent() -> None:
    made = registry("one", pml="^ob1,bfo,direct")
    with pytest.raises(RankFailed, match="no PML can be used"):
        run(made, programs.ring)
    assert state_of(made, "one")[0] == "not-selected"
    assert "it wraps a PML and the parameter pml leaves none" in state_of(made, "one")[1]


def test_what_is_excluded_is_not_imported() -> None:
    made = registry("through", pml="^through")
    target = next(record for record in made.records_of("pml") if record.name == "through")
    target.target = "a_module_nobody_has:COMPONENT"
    assert layers(run(made, programs.ring).processes[0]) == ["Ob1"]
    assert "a_module_nobody_has" not in sys.modules
    assert state_of(made, "through")[0] == "blocked"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pml_one_fails": True}, "declines raised ValueError: what was the question?"),
        ({"pml_one_reason": None}, "declines raised TypeError: one made no str but None"),
    ],
)
def test_a_wrapper_that_cannot_say_is_left_out(settings: dict[str, object], said: str) -> None:
    made = registry("one", **settings)
    assert layers(run(made, programs.ring).processes[0]) == ["Ob1"]
    assert state_of(made, "one") == ("open-failed", said)


def test_what_is_neither_is_left_out() -> None:
    made = registry("neither")
    assert layers(run(made, programs.ring).processes[0]) == ["Ob1"]
    assert state_of(made, "neither") == (
        "incompatible",
        "it is no PmlComponent or PmlWrapperComponent, as a component of pml has to be",
    )


def test_a_pml_made_for_the_older_contract_is_selected_and_wrapped() -> None:
    made = registry("old", "one")
    job = run(made, programs.ring)
    assert layers(job.processes[0]) == ["one", "Ob1"]
    assert job.processes[0].context.pml_name == "old"
    assert state_of(made, "old") == ("selected", "")
    assert state_of(made, "ob1") == ("not-selected", "old has the higher priority")
