"""Makes a schedule of faults small: what is left still makes the world fail, and all of it has to.

The faults of a script become single *events* first: each packet that was struck is one, by its
number in its flow, with what was drawn for it. What lasts, and what paces, stays one event. A world
that is given all events is the one that failed. Then delta debugging (Zeller and Hildebrandt, 2002)
takes away as many as it can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from ompy.net.faults.fault_rules import PACKET_FAULTS, STORAGE_FAULTS, WORK_FAULTS, FaultRule
from ompy.net.faults.flows import UNKNOWN, Injection

T = TypeVar("T")
RUNS: Final = 400  # worlds; arbitrary: some minutes of a small program


class Shrunk(NamedTuple):
    """What is left of a list.

    Attributes:
        items: the least that still fails, or what there was when the budget was used up.
        runs: how often it was tried.
        complete: no single item can be left out.
    """

    items: list[object]
    runs: int
    complete: bool


class OutOfBudget(Exception):
    """It has been tried as often as it may."""


class _Tries:
    """Counts attempts, and remembers what came of them."""

    def __init__(self, fails: Callable[[Sequence[object]], bool], budget: int) -> None:
        self._fails = fails
        self._budget = budget
        self._known: dict[tuple[int, ...], bool] = {}
        self.runs = 0

    def __call__(self, everything: Sequence[object], chosen: Sequence[int]) -> bool:
        key = tuple(chosen)
        if key not in self._known:
            if self.runs >= self._budget:
                raise OutOfBudget
            self.runs += 1
            self._known[key] = self._fails([everything[index] for index in key])
        return self._known[key]


def shrink(
    items: Sequence[T], fails: Callable[[Sequence[T]], bool], *, budget: int = RUNS
) -> Shrunk:
    """The smallest part of `items` this finds for which `fails` is true, in the order given.

    Args:
        items: for all of which `fails` is true.
        fails: the same for the same items.
        budget: calls of `fails` at most.
    """
    tries = _Tries(fails, budget)  # type: ignore[arg-type]
    left = list(range(len(items)))
    complete = True
    try:
        if tries(items, ()):
            return Shrunk([], tries.runs, complete)
        parts = min(2, len(left))
        while len(left) > 1:
            smaller = _smaller(items, left, parts, tries)
            if smaller is not None:
                left, parts = smaller
            elif parts >= len(left):
                break
            else:
                parts = min(len(left), 2 * parts)
    except OutOfBudget:
        complete = False
    return Shrunk([items[index] for index in left], tries.runs, complete)


def _smaller(
    items: Sequence[object], left: list[int], parts: int, tries: _Tries
) -> tuple[list[int], int] | None:
    """A part that fails alone, or all but a part that do; and into how many to cut that."""
    cuts = [left[n * len(left) // parts : (n + 1) * len(left) // parts] for n in range(parts)]
    for part in cuts:
        if tries(items, part):
            return part, min(2, len(part))
    if parts > 2:
        for part in cuts:
            rest = [index for index in left if index not in set(part)]
            if tries(items, rest):
                return rest, max(parts - 1, 2)
    return None


def events(rules: Sequence[FaultRule], injections: Sequence[Injection]) -> list[FaultRule]:
    """The rules of a script as single events: those that struck in one world, one by one."""
    found = []
    for index, rule in enumerate(rules):
        if rule.what in (*PACKET_FAULTS, *WORK_FAULTS, *STORAGE_FAULTS):
            mine = sorted(injection for injection in injections if injection.rule == index)
            found += [_event(rule, injection) for injection in mine]
        else:
            found.append(rule)
    return found


def _event(rule: FaultRule, injection: Injection) -> FaultRule:
    made = FaultRule(
        rule.what,
        ranks=(injection.sender,),
        peers=() if injection.receiver == UNKNOWN else (injection.receiver,),
        rails=() if rule.what in STORAGE_FAULTS else (injection.rail,),
        nth=(injection.nth,),
        buffer=rule.buffer,
        gives_up=rule.gives_up,
        error=rule.error,
    )
    match rule.what:
        case "corrupt":
            return made._replace(mode=rule.mode, bit=injection.detail)
        case "reorder" | "delay":
            return made._replace(delay=injection.detail)
    return made
