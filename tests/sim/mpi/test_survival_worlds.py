"""Revoke, Agree and Shrink in worlds of their machines alone: every death at every step."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.frameworks.fault_tolerance.consensus import Consensus, Note, Say
from ompy.frameworks.fault_tolerance.recovery import Channel

from tests.support.effort import THOROUGH, effort
from tests.support.survival_world import PROGRAMS, Plan, World, every_death
from tools.sweep.deaths.survival import COLUMNS, draw_plan

ORDERS = ["first", "last", "low", "high", *range(effort(2))]


@pytest.mark.parametrize(
    ("members", "program"),
    [
        (members, program)
        for members in (2, 3, 4, 5)
        for program in PROGRAMS
        if THOROUGH or members < 4 or program == "recover"
    ],
)
def test_every_death_at_every_step(members: int, program: str) -> None:
    """One death: at each step of several orders, with each part of what it sends in it.

    Of four and five members CI takes one order of the program that does all; nights take all.
    """
    for order in ORDERS if THOROUGH or members < 4 else ORDERS[:1]:
        for loses in (False, True):
            plan = Plan(members, program, order, {}, loses)
            worlds = [World(each).run() for each in every_death(plan)]
            assert all(len(world.dead) == 1 for world in worlds)
            assert {world.dead[0] for world in worlds} == set(range(members))


def test_context_ids_that_differ() -> None:
    for members in (2, 3, 4):
        for plan in every_death(Plan(members, "shrink", members, {}, apart=True)):
            World(plan).run()


def test_several_deaths() -> None:
    seen: set[str] = set()
    for number in range(effort(2250)):
        world = World(draw_plan(number)).run()
        seen |= {name for name, count in world.counted.items() if count}
    assert seen >= {name for names in COLUMNS.values() for name in names} - {"worlds"}


def _forgetful(self: Consensus) -> list[Note]:
    """A proposal of a later leader that does not ask what was accepted before."""
    self._votes = {m: vote._replace(accepted=-1) for m, vote in self._votes.items()}
    return _PROPOSE(self)


def _hasty(self: Consensus, note: Note) -> list[Note]:
    """Who is told a proposal takes it for the decision."""
    return [*_ACCEPT(self, note), *self._decide(note.value)]


def _quiet(self: Channel) -> None:
    """Who hears of a revocation keeps it."""
    self.revoked = self.communicator.revoked = True


_PROPOSE, _ACCEPT = Consensus._propose, Consensus._accept


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "program"),
    [
        (Consensus, "_propose", _forgetful, "agree"),
        (Consensus, "_accept", _hasty, "agree"),
        (Channel, "revoke", _quiet, "revoke"),
    ],
)
def test_what_is_wrong_is_found(
    owner: type, name: str, wrong: Any, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three mistakes, each made on purpose: some world fails."""
    monkeypatch.setattr(owner, name, wrong)
    for number in range(20_000):
        plan = draw_plan(number)
        if plan.program == program:
            try:
                World(plan).run()
            except AssertionError:
                return
    pytest.fail(f"{wrong.__doc__} Nobody noticed")


def test_a_question_is_asked_of_those_that_may_be_done() -> None:
    """What the sweep has to see: a leader that begins a later round."""
    plan = Plan(3, "agree", "first", {})
    asked = [World(each).run().counted[f"said {Say.ASK}"] for each in every_death(plan)]
    assert max(asked) > 0
