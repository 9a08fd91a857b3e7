"""How long a path that breaks again and again is left alone."""

from __future__ import annotations

from random import Random

from ompy.frameworks.paths.healing import Damping, HealingLimits
from ompy.frameworks.paths.path_watch import MS

SECOND = 1_000 * MS


def damping(**limits: int) -> Damping:
    return Damping(HealingLimits(**limits), Random(1))


def test_the_first_break_is_forgiven() -> None:
    assert damping().broke(5 * SECOND) == 0


def test_breaks_in_a_row_are_held_against_a_path_for_longer_and_longer() -> None:
    path, limits = damping(), HealingLimits()
    held = [path.broke(SECOND) for _ in range(12)]
    assert held[:4] == [0, limits.hold, 3 * limits.hold, 7 * limits.hold]
    assert held == sorted(held)
    assert held[-1] == limits.hold_max


def test_time_in_order_makes_it_good() -> None:
    path, limits = damping(), HealingLimits()
    for _ in range(2):
        path.broke(0)
    before = path.penalty(0)
    assert path.penalty(limits.decay) == before / 2
    assert path.broke(20 * limits.decay) <= limits.hold // 100


def test_pauses_grow_up_to_a_limit_and_have_jitter() -> None:
    path, limits = damping(), HealingLimits()
    pauses = [path.pause(tries) for tries in range(1, 60)]
    for tries, pause in enumerate(pauses, 1):
        least = min(limits.pause << (tries - 1), limits.pause_max)
        assert least <= pause <= least + least // 2
    assert len(set(pauses[20:])) > 10, "all ends would try again at once"
