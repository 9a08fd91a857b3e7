"""Agreeing on context ids: what ranks propose when several agreements are under way at a time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.data.errors import MPIError
from ompy.engine.base import Engine
from ompy.engine.lock import rank_lock
from ompy.mpi.communicators.context_agreement import FIRST_ID, LAST_ID, _proposals, first_proposal
from ompy.mpi.state import ContextIds, World

ROUNDS = 60  # arbitrary: far more than agreements that cross need


def rank(number: int, used: Any = ()) -> Any:
    """A rank that uses these ids."""
    world = World.__new__(World)
    world.context = SimpleNamespace(rank=number)  # type: ignore[assignment]
    world.process = SimpleNamespace(communicators=set(used))  # type: ignore[assignment]
    world.engine = Engine.__new__(Engine)
    world.engine.lock = rank_lock()
    world.ids = ContextIds()
    return world


class Agreement:
    """One agreement between some ranks, a round at a time."""

    def __init__(self, worlds: list[Any]) -> None:
        self.worlds = worlds
        self.proposals = [_proposals(world, *first_proposal(world)) for world in worlds]
        self.said: list[bytes] = [b""] * len(worlds)
        self.agreed: list[int] = []

    def begin(self, place: int) -> None:
        self.said[place] = next(self.proposals[place])

    def hear(self, place: int, answers: list[bytes]) -> None:
        """All have said something; this member takes its step."""
        try:
            self.said[place] = self.proposals[place].send(answers)
        except StopIteration as ended:
            self.agreed.append(ended.value)


def run_in_lockstep(agreements: list[Agreement], orders: dict[int, list[int]]) -> int:
    """Each rank takes the steps of its agreements in an order of its own. Returns the rounds."""
    for world, order in orders.items():
        for each in order:
            agreements[each].begin(world)
    for count in range(ROUNDS):
        heard = [list(each.said) for each in agreements]
        for world, order in orders.items():
            for each in order:
                if len(agreements[each].agreed) < len(orders) or not agreements[each].agreed:
                    agreements[each].hear(world, heard[each])
        over = [each for each in agreements if len(each.agreed) == len(orders)]
        for each in over:
            for order in orders.values():
                order[:] = [other for other in order if agreements[other] is not each]
        if not any(orders.values()):
            return count
    return ROUNDS


@pytest.mark.parametrize("several", [2, 3, 6])
def test_agreements_that_cross_end(several: int) -> None:
    """Two ranks begin several agreements, one in the opposite order; each step is in lockstep."""
    worlds = [rank(0), rank(1)]
    agreements = [Agreement(worlds) for _ in range(several)]
    forth = list(range(several))
    assert run_in_lockstep(agreements, {0: forth, 1: forth[::-1]}) < ROUNDS
    found = [each.agreed for each in agreements]
    assert all(len(set(each)) == 1 for each in found)
    assert len({each[0] for each in found}) == several
    held = [set(world.ids.reserved) for world in worlds]
    assert held == [{each[0] for each in found}] * 2, "what was not taken is free again"


@given(st.lists(st.sets(st.integers(FIRST_ID, 40)), min_size=1, max_size=5))
def test_one_that_is_free_in_all(used: list[set[int]]) -> None:
    worlds = [rank(number, each) for number, each in enumerate(used)]
    one = Agreement(worlds)
    assert run_in_lockstep([one], {number: [0] for number in range(len(worlds))}) < ROUNDS
    assert len(set(one.agreed)) == 1
    assert one.agreed[0] not in set().union(*used)


def test_nothing_is_held_by_an_agreement_that_fails() -> None:
    world = rank(0)
    proposals = _proposals(world, *first_proposal(world))
    next(proposals)
    assert world.ids.reserved
    proposals.close()
    assert not world.ids.reserved


def test_no_id_is_left() -> None:
    with pytest.raises(MPIError, match="are in use: free communicators"):
        first_proposal(rank(0, range(LAST_ID + 1)))
    assert first_proposal(rank(0, range(LAST_ID)))[0] == LAST_ID
