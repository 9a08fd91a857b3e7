#!/usr/bin/env python3
"""100,000 jobs of the control plane in virtual worlds: processes killed, hosts down, silent wires.

    python tools/sweep control             all of them: some twenty minutes of one core
    python tools/sweep control --worlds N  the first N
    python tools/sweep control --world N   one again

What a world is stands in `tests/support/control_world.py`, what a sweep does in `worlds.py`.
When all have passed, `docs/control-sweep.md` is written.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

from tests.support import passive_world
from tests.support.control_processes import Fault
from tests.support.control_world import World, depth_of, faults, judge, shape_of
from tools.sweep.worlds import Sums, WorldSweep, main

HEADING: Final = """\
# The sweep of the control plane

`tests/support/control_world.py` says what a world is: two to five hosts, a tree of agents, one to two ranks a host; up to two faults, each at one act of a process or at one message. The machines of launcher, relays and agents are the product's.
Every third is of passive mode (`tests/support/passive_world.py`): one to five hosts whose agents come by themselves.
Each job ended, with the code and the report of what happened first at the launcher; nobody was left waiting, and no process was left."""  # noqa: E501 - a paragraph of Markdown
COLUMNS: Final = {  # heading: counters that are summed
    "worlds": ("worlds",),
    "faults that struck": ("struck",),
    "went well": ("outcome well",),
    "rank killed": ("outcome rank killed",),
    "its own end": ("outcome exit", "outcome abort", "outcome crash"),
    "agent killed": ("outcome agent kill", "outcome relay kill"),
    "host down": ("outcome agent down", "outcome relay down"),
    "connection cut": ("outcome wire cut",),
    "connection silent": (
        "outcome wire dumb up",
        "outcome wire dumb down",
        "outcome wire dumb both",
    ),
    "launcher killed": ("outcome launcher killed",),
    "passive, well": ("passive well",),
    "passive, ended": ("passive ended",),
}


PASSIVE_TURN: Final = 3  # arbitrary: passive mode has fewer kinds of processes


def drawn(number: int, every: list[Fault]) -> list[Fault]:
    """None to two of the faults of a world."""
    chance = Random(f"faults {number}")  # noqa: S311 - it repeats a world
    return [chance.choice(every) for _ in range(chance.choice((0, 1, 1, 2)))]


def launched(number: int) -> World:
    """The world of a number, not yet run."""
    shape = shape_of(number)
    return World(shape, *drawn(number, list(faults(shape))))


def joined(number: int) -> passive_world.World:
    """The world of passive mode of a number, not yet run."""
    shape = passive_world.shape_of(number)
    return passive_world.World(shape, *drawn(number, list(passive_world.faults(shape))))


def run(number: int) -> tuple[str, Counter[str]]:
    """One world: its class, and what it counted."""
    if number % PASSIVE_TURN == 0:
        world = joined(number).run()
        became = "well" if passive_world.judge(world) == "well" else "ended"
        counted = Counter({f"passive {became}": 1, "struck": len(world.struck)})
        return f"passive, {world.shape.hosts} hosts", counted
    job = launched(number).run()
    counted = Counter({f"outcome {judge(job)}": 1, "struck": len(job.struck)})
    return f"{job.shape.hosts} hosts, depth {depth_of(job.shape)}", counted


def show(number: int) -> None:
    """Run one world and show it."""
    if number % PASSIVE_TURN == 0:
        world = joined(number)
        print(world.shape, *world.faults, sep="\n")
        print(passive_world.judge(world.run()), *world.told, sep="\n")
        return
    job = launched(number)
    print(job.shape, *job.faults, sep="\n")
    job.run()
    print(f"code {job.launcher.code} after {job.clock.now:.3f} s: {judge(job)}")
    for failure in job.failures:
        print(dict(failure))


def silent(sums: Sums) -> list[str]:
    """Outcomes that should have been seen and were not."""
    total = sum(sums.values(), Counter[str]())
    wanted = [name for names in COLUMNS.values() for name in names]
    few = total["worlds"] < 1000  # arbitrary: then each outcome has come dozens of times
    return [] if few else [f"{name} stayed 0" for name in wanted if not total[name]]


CONTROL: Final = WorldSweep(
    name="control",
    worlds=100_000,  # arbitrary: as the other sweeps of the release
    shard=500,  # arbitrary: some ten seconds
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
)

if __name__ == "__main__":
    main(CONTROL, __doc__ or "")
