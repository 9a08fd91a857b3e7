#!/usr/bin/env python3
"""A million worlds in which members revoke, agree and shrink while up to four of five die.

    python tools/sweep survival             all of them: some half an hour of one core
    python tools/sweep survival --part 1/4  the first quarter
    python tools/sweep survival --world N   one again

What a world is stands in `tests/support/survival_world.py`, what a sweep does in `worlds.py`.
When all or a part have passed, `docs/survival-sweep.md` is written.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

from tests.support.survival_world import PROGRAMS, Death, Plan, World
from tools.sweep.parts import Sums
from tools.sweep.worlds import WorldSweep, main

HEADING: Final = """\
# The sweep of survival

`tests/support/survival_world.py` says what a world is: two to five members that run the product's `Recovery`, consensus, `Agree` and `Shrink`, and one to all but one of them die, each in a step of its own with a part of what it sends in it. Programs: *agree*, twice; *shrink*; *revoke*; *recover*, which revokes on an error, agrees until that goes well, and shrinks.
All who lived returned, from `Finalize` too; they were told the same, error for error; and who died had been told nothing else."""  # noqa: E501 - a paragraph of Markdown
COLUMNS: Final = {  # heading: counters that are summed
    "worlds": ("worlds",),
    "deaths": ("deaths",),
    "with a part sent": ("halfway",),
    "of leaders": ("leaders",),
    "after a result": ("who knew",),
    "messages": tuple(f"said {word}" for word in (1, 2, 3, 4, 5, 6, 32, 34)),
    "lost": ("lost",),
    "heard from the dead": ("after its sender",),
    "questions": ("said 5",),
    "over": ("said 6",),
    "revocations": ("said 32",),
}
# steps of a world of so many members in which nobody dies, rounded up; measured, all programs
STEPS: Final = {2: 36, 3: 77, 4: 128, 5: 189}


def draw_plan(number: int) -> Plan:
    """What the world of a number is."""
    chance = Random(f"survival {number}")  # noqa: S311 - it repeats a world
    members = chance.randint(2, 5)
    victims = chance.sample(range(members), chance.randint(1, members - 1))
    deaths = {
        victim: Death(chance.randrange(STEPS[members]), chance.randrange(members))
        for victim in victims
    }
    program = chance.choice(list(PROGRAMS))
    loses, apart = chance.random() < 0.5, chance.random() < 0.25  # arbitrary: enough of each
    return Plan(members, program, number, deaths, loses, apart)


def run(number: int) -> tuple[str, Counter[str]]:
    """One world: its class, and what it counted."""
    plan = draw_plan(number)
    return f"{plan.program}, {plan.members} members", World(plan).run().counted


def show(number: int) -> None:
    """Run one world and show it."""
    plan = draw_plan(number)
    print(plan)
    world = World(plan)
    try:
        world.run()
    finally:
        for member in world.members:
            became = "died" if member.rank in world.dead else "returned"
            print(member.rank, became if member.returned or member.rank in world.dead else "waits")
            print(*member.told, sep="\n")
    print(dict(world.counted))


def silent(sums: Sums) -> list[str]:
    """What should have been seen and was not."""
    total = sum(sums.values(), Counter[str]())
    wanted = {name for names in COLUMNS.values() for name in names}
    few = total["worlds"] < 2000  # arbitrary: then each has come dozens of times
    return [] if few else [f"{name} stayed 0" for name in sorted(wanted) if not total[name]]


SURVIVAL: Final = WorldSweep(
    name="survival",
    worlds=1_000_000,
    shard=5000,  # arbitrary: some ten seconds
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
)

if __name__ == "__main__":
    main(SURVIVAL, __doc__ or "")
