"""`ompy sim --explore`: every schedule of a program; `--schedule`: one of them again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.cli.sim import PROGRAM, make_scenario, preload, run_scenario, tell_user
from ompy.mca.errors import UsageError

if TYPE_CHECKING:
    from ompy.runtime.exploration.events import Event, Race
    from ompy.runtime.exploration.explorer import Explored, Failure
    from ompy.runtime.simulation.simulated_world import Scenario

INTERRUPTED: Final = 130  # exit code: 128 and SIGINT, as a shell has it
FAILED: Final = 1  # exit code where the world's own is 0; as any program that has failed
NOT_WITH: Final = {  # options that say something of packets, or of many worlds
    "faults": "--fault",
    "kills": "--kill",
    "rails": "--rails",
    "ranks_per_host": "--ranks-per-host",
    "latency": "--latency",
    "bandwidth": "--bandwidth",
    "seeds": "--seeds",
}
COLL: Final = "basic,inter"  # linear: members wait for no more of the others than MPI demands
MODES: Final = {True: "with standard sends that buffer", False: "with standard sends that wait"}


def run_exploration(options: dict[str, Any]) -> int:
    """All schedules. Returns the exit code.

    Raises:
        UsageError, ComponentError: what was asked for is wrong.
    """
    from ompy.runtime.exploration.explorer import Bounds, Explorer
    from ompy.runtime.fault_script import duration

    scenario = _scenario(options, "--explore", ("trace",))
    seconds = duration(options["time"], "--time") / 1e9 if options["time"] else float("inf")
    preload(scenario.job)
    null = os.open(os.devnull, os.O_WRONLY)
    explored: list[Explored] = []
    for buffers in (True, False):
        jobs = options["jobs"] or os.cpu_count() or 1
        bounds = Bounds(options["worlds"], seconds, jobs)
        here = _in_mode(scenario, options, buffers=buffers)._replace(output=null)
        try:
            found = Explorer(here, bounds).explore_all()
        except KeyboardInterrupt:
            tell_user("interrupted: nothing is proven", "interrupted", "warning")
            return INTERRUPTED
        if found.failure is not None:
            return _tell_failure(options, found, found.failure, buffers=buffers)
        explored.append(found)
    return _tell_well(options, explored)


def run_schedule(options: dict[str, Any]) -> int:
    """One schedule, from a file. Returns the exit code.

    Raises:
        UsageError, ComponentError: what was asked for is wrong.
    """
    from ompy.runtime.exploration.events import Diverged
    from ompy.runtime.exploration.schedule_file import read_schedule
    from ompy.runtime.simulation.simulated_world import Exploring

    path = options["schedule"]
    try:
        saved = read_schedule(path)
    except (OSError, ValueError) as problem:
        raise UsageError(f"--schedule {path}: {problem}") from None
    if saved.ranks != options["ranks"]:
        raise UsageError(f"--schedule {path}: it is of {saved.ranks} ranks: run it with that -n")
    scenario = _scenario(options, "--schedule", ())
    exploring = Exploring(saved.script, saved.buffers, saved.polls)
    try:
        return run_scenario(scenario._replace(exploring=exploring), options)
    except Diverged as problem:
        tell_user(f"error: --schedule {path}: {problem}", "diverged", "error")
        return FAILED


def _in_mode(scenario: Scenario, options: dict[str, Any], *, buffers: bool) -> Scenario:
    from ompy.runtime.simulation.simulated_world import Exploring

    return scenario._replace(exploring=Exploring({}, buffers, options["polls"]))


def _scenario(options: dict[str, Any], mode: str, others: tuple[str, ...]) -> Scenario:
    """A world in which messages are matched without packets.

    Raises:
        UsageError: an option says something of packets.
    """
    names = {**NOT_WITH, **{name: f"--{name}" for name in others}}
    for name, option in names.items():
        if options[name] and options[name] != options["defaults"][name]:
            raise UsageError(f"{option} has no meaning with {mode}: its worlds have no packets")
    for name, value in options["mca"]:
        if name in {"pml", "btl", "bml"}:
            raise UsageError(f"--mca {name} {value}: {mode} has a PML of its own, and no BTL")
    own = [("pml", "direct"), ("btl", "self")]
    if not any(name == "coll" for name, _ in options["mca"]):
        own.append(("coll", COLL))
    options = {**options, "mca": (*options["mca"], *own)}
    return make_scenario(options)


def _tell_well(options: dict[str, Any], explored: list[Explored]) -> int:
    schedules = max(one.schedules for one in explored)
    worlds = sum(one.worlds for one in explored)
    matchings = f"{schedules} schedule{'s' if schedules > 1 else ''}"
    left = sum(one.left for one in explored)
    if left:
        tell_user(
            f"not proven: {worlds} worlds all ended well, at least {left} are left "
            "(--worlds, --time)",
            "not proven",
            "warning",
            worlds=worlds,
            left=left,
        )
        return 0
    tell_user(
        f"{matchings}, 2 modes of buffering: every one ends well ({worlds} worlds); "
        f"proven for -n {options['ranks']} and this input",
        "proven",
        worlds=worlds,
        schedules=schedules,
    )
    if any(one.bounded for one in explored):
        tell_user(
            f"within this bound: a poll that could find something finds nothing at most "
            f"{options['polls']} times in a row (--polls)",
            "bound",
        )
    return 0


def _tell_failure(
    options: dict[str, Any], explored: Explored, failure: Failure, *, buffers: bool
) -> int:
    from ompy.runtime.exploration.trunk import DIVERGED, UNFIT

    result = failure.result
    code = result.code or FAILED
    tell_user(
        f"{result.kind} {MODES[buffers]}, in world {explored.worlds}: {result.text}",
        "schedule fails",
        "error",
        kind=result.kind,
        exit_code=code,
        worlds=explored.worlds,
    )
    if result.kind in {DIVERGED, UNFIT}:
        return code
    if not buffers:
        tell_user("every schedule ends well where standard sends buffer", "buffering")
    for line in _story(failure):
        tell_user(line, "choice")
    _save(options, failure, buffers=buffers)
    return code


def _story(failure: Failure) -> Iterator[str]:
    turn, instead = failure.turn, failure.instead
    others = [event for event in failure.choices if turn is None or event.key != turn.key]
    if others:
        yield "it takes these choices:"
        yield from (f"  {said_of(event)}" for event in others)
    if turn is not None and instead is not None:
        yield "it hangs on this one:" if not others else "and it hangs on this one:"
        yield f"  {said_of(turn)}"
        yield f"  with {_in_its_place(instead)} it ends well"
    elif not others and failure.tried:
        yield "it hangs on no choice: no other schedule that was tried ends well"


def said_of(event: Event) -> str:
    """A choice in words."""
    from ompy.runtime.exploration.events import ANY, FROM, NOTHING, PROBE

    if event.served:
        asked = f"what rank {event.value[1]} asked at {_short(event.sent)}"
        return f"rank {event.key[0]}'s part of a window serves {asked}"
    where = f"rank {event.key[0]} at {_short(event.site)}"
    if event.value == (NOTHING,):
        return f"{where} finds nothing yet"
    if event.value[0] == FROM:
        does = "finds" if event.kind == PROBE else "takes"
        return f"{where} {does} the message that rank {event.value[1]} sent at {_short(event.sent)}"
    does = "is told first of" if event.kind == ANY else "finds complete"
    return f"{where} {does} its operation {event.value[1]}"


def _in_its_place(race: Race) -> str:
    from ompy.runtime.exploration.events import FROM, NOTHING

    if race.event.served:
        return f"what rank {race.value[1]} asked at {_short(race.site)} first"
    if race.value[0] == FROM:
        return f"the message that rank {race.value[1]} sent at {_short(race.site)}"
    return "nothing yet" if race.value == (NOTHING,) else f"its operation {race.value[1]}"


def _short(site: str) -> str:
    return os.path.relpath(site) if site.startswith(os.getcwd() + os.sep) else site


def _save(options: dict[str, Any], failure: Failure, *, buffers: bool) -> None:
    from ompy.runtime.exploration.schedule_file import text_of

    kept = {event.key: event for event in failure.choices}
    if failure.turn is not None:
        kept[failure.turn.key] = failure.turn
    choices = [(one.key, one.value, one.site, said_of(one)) for one in kept.values()]
    text = text_of(options["ranks"], options["polls"], choices, buffers=buffers)
    program = Path(options["program"])
    path = Path(options["keep"]) / f"{program.stem}-schedule.json"
    try:
        os.makedirs(options["keep"], exist_ok=True)
        outputs.write_text(str(path), text)
    except OSError as problem:
        tell_user(f"warning: {path}: {problem.strerror}; the schedule is lost", "lost", "warning")
        return
    tell_user(
        f"the schedule is in {path}; again by: {PROGRAM} -n {options['ranks']} "
        f"--schedule {path} {options['program']}",
        "schedule",
        file=str(path),
    )
