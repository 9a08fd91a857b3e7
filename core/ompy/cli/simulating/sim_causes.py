"""Failing seeds of a sweep, grouped by cause; and the schedule that such a cause comes down to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ompy.cli.simulating.sim import tell_user

if TYPE_CHECKING:
    from ompy.runtime.simulation.sweep import Trial

WORLDS: Final = 200  # arbitrary: some seconds
SECONDS: Final = 20.0  # arbitrary: what a user waits for who has waited for a sweep
SEEDS_SHOWN: Final = 10  # arbitrary: a line of a terminal
_STANDS: Final = re.compile(r"^  (?:rank \d+|ranks [\d, -]+) (?:is|are) at (\S+)", re.MULTILINE)

Cause = tuple[str, int, str, tuple[str, ...]]


def cause_of(trial: Trial) -> Cause:
    """What failures have in common: how they end, what is raised, the lines where ranks stand."""
    text = trial.outcome.text
    return *trial.signature, tuple(sorted(set(_STANDS.findall(text))))


def tell_causes(failures: Iterable[Trial]) -> list[Trial]:
    """Say which seeds fail for the same cause. Returns the one with the lowest seed of each."""
    groups: dict[Cause, list[Trial]] = {}
    for trial in sorted(failures, key=lambda failed: failed.scenario.seed):
        groups.setdefault(cause_of(trial), []).append(trial)
    for (kind, code, raised, places), group in groups.items():
        seeds = [trial.scenario.seed for trial in group]
        more = ", ..." if len(seeds) > SEEDS_SHOWN else ""
        shown = ", ".join(map(str, seeds[:SEEDS_SHOWN])) + more
        what = f"{kind}{raised and f' by {raised}'}"
        where = f" at {', '.join(places)}" if places else ""
        many = "1 seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
        tell_user(
            f"cause: {what}{where}: {many} ({shown})",
            "cause",
            kind=kind,
            exit_code=code,
            raised=raised,
            places=list(places),
            seeds=seeds,
        )
    return [group[0] for group in groups.values()]


def tell_schedule(trial: Trial, options: dict[str, Any]) -> bool:
    """Look for a schedule of the same program that fails; tell of it. Returns whether there is one.

    It may end otherwise: where a rank of a world of packets hears that another has left, one whose
    messages are matched without packets waits for ever.
    """
    from ompy.cli.simulating.sim_explore import plain_options, plain_scenario
    from ompy.cli.simulating.sim_failure import tell_story
    from ompy.runtime.exploration.explorer import Bounds
    from ompy.runtime.exploration.modes import explore_modes

    null = os.open(os.devnull, os.O_WRONLY)
    scenario = plain_scenario(options)._replace(output=null)
    bounds = Bounds(WORLDS, SECONDS, 1, None, 2, options["seed"])
    modes = explore_modes(scenario, bounds, {}, jobs=1, checkers={})
    try:
        for buffers, found in modes:
            failure = found.failure
            if failure is not None:
                first = failure.result.text.partition("\n")[0]
                seed = trial.scenario.seed
                text = f"seed {seed}: explored, a schedule of the program fails: {first}"
                tell_user(text, "schedule", seed=seed, kind=failure.result.kind)
                tell_story(plain_options(options), failure, buffers=buffers)
                return True
    finally:
        modes.close()
        os.close(null)
    return False
