"""When a broken path is asked about, mended and left alone: the machine of `healing.py`."""

from __future__ import annotations

from random import Random

import pytest
from ompy.frameworks.healing import (
    TABLE,
    HealEvent,
    Healing,
    HealingLimits,
    Phase,
    WrongPhase,
    follow,
)
from ompy.frameworks.paths import MS

SECOND = 1_000 * MS


def healing(**limits: int) -> Healing:
    return Healing(HealingLimits(**limits), Random(1))


def test_every_pair_is_in_the_table_or_an_error() -> None:
    for phase in Phase:
        for event in HealEvent:
            if (phase, event) in TABLE:
                assert follow(phase, event) is TABLE[phase, event]
            else:
                with pytest.raises(WrongPhase):
                    follow(phase, event)
    assert all(follow(p, HealEvent.MENDED) is Phase.SOUND for p in Phase if p is not Phase.SOUND)


def test_the_first_break_is_forgiven() -> None:
    assert healing().broke(5 * SECOND) == 0


def test_breaks_in_a_row_are_held_against_a_path_for_longer_and_longer() -> None:
    machine, limits = healing(), HealingLimits()
    held = []
    for _ in range(12):
        held.append(machine.broke(SECOND))
        machine.waited()
        machine.proven()
        machine.mended()
    assert held[:4] == [0, limits.hold, 3 * limits.hold, 7 * limits.hold]
    assert held == sorted(held)
    assert held[-1] == limits.hold_max
    assert machine.breaks == 12


def test_time_in_order_makes_it_good() -> None:
    machine, limits = healing(), HealingLimits()
    for _ in range(2):
        machine.broke(0)
        machine.waited()
        machine.proven()
        machine.mended()
    assert machine.penalty(limits.decay) == pytest.approx(1.0)
    assert machine.penalty(20 * limits.decay) < 0.001
    assert machine.broke(20 * limits.decay) < limits.hold // 1_000


def test_tries_go_on_for_ever_with_pauses_up_to_a_limit() -> None:
    machine, limits = healing(), HealingLimits()
    machine.broke(0)
    pauses = []
    for _ in range(200):
        machine.waited()
        machine.proven()
        pauses.append(machine.refused())
    assert pauses[0] >= limits.pause
    assert pauses[-1] <= limits.pause_max * 3 // 2
    assert min(pauses[10:]) >= limits.pause_max
    assert len(set(pauses[10:])) > 100, "all who try do so at the same moments"
    assert machine.tries == 200


def test_whoever_mends_it_and_wherever_it_is() -> None:
    machine = healing()
    machine.broke(0)
    machine.mended()
    assert machine.phase is Phase.SOUND
    with pytest.raises(WrongPhase):
        machine.mended()
