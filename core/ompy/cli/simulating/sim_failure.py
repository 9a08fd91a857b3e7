"""What is told and kept of a schedule that fails."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.cli.simulating.kept_world import about_world, debugging_command
from ompy.cli.simulating.sim import OTHERS_NETS, PROGRAM, tell_user

if TYPE_CHECKING:
    from ompy.runtime.exploration.events import Event, Race, Value
    from ompy.runtime.exploration.explorer import Explored, Failure

FAILED: Final = 1  # exit code where the world's own is 0; as any program that has failed
# of a search without an answer, by kind of its last world (`runtime/exploration/trunk.py` and
# `runtime/simulation/simulated_world.py` have these)
GIVEN_UP: Final = {
    "unfit": "this program cannot be explored",
    "diverged": "this program cannot be explored, as it does not do the same again",
}
MODES: Final = {True: "with standard sends that buffer", False: "with standard sends that wait"}


def tell_failure(
    options: dict[str, Any],
    explored: Mapping[bool, Explored],
    failure: Failure,
    *,
    buffers: bool,
) -> int:
    """Tell of a schedule that fails, and keep it. Returns the exit code."""
    result, random = failure.result, explored[buffers].random
    worlds = explored[buffers].worlds
    where = f"world {random.worlds} of random priorities" if random else f"world {worlds}"
    code = result.code or FAILED
    what = f"{result.kind} {MODES[buffers]}, in {where}"
    if result.kind in GIVEN_UP:
        what = GIVEN_UP[result.kind]
    tell_user(
        f"{what}: {result.text}",
        "schedule fails",
        "error",
        kind=result.kind,
        exit_code=code,
        worlds=worlds,
    )
    if result.kind in GIVEN_UP:
        return code
    if not buffers:
        first = explored[True]
        some = (
            f"all {first.worlds} worlds that were tried end"
            if first.left or first.heeded
            else "every schedule ends"
        )
        tell_user(f"{some} well where standard sends buffer", "buffering")
    tell_story(options, failure, buffers=buffers)
    return code


def tell_story(options: dict[str, Any], failure: Failure, *, buffers: bool) -> None:
    """Say what a failure hangs on; keep the schedule, and its picture beside one that ends well."""
    for line in _story(failure):
        tell_user(line, "choice")
    _save(options, failure, buffers=buffers)
    _draw(options, failure)


def _story(failure: Failure) -> Iterator[str]:
    turn, instead = failure.turn, failure.instead
    others = [event for event in failure.choices if turn is None or event.key != turn.key]
    if others:
        yield "it takes these choices:"
        yield from (f"  {said_of(event)}" for event in others)
    if turn is not None and instead is not None:
        yield "this choice decides:" if not others else "and this choice decides:"
        yield f"  {said_of(turn)}"
        yield f"  with {_in_its_place(instead)} it ends well"
    elif not others and failure.tried:
        yield "no choice decides: no other schedule that was tried ends well"


def said_of(event: Event) -> str:
    """A choice in words."""
    from ompy.runtime.exploration.events import (
        ANY,
        CANCEL,
        FROM,
        FURTHER,
        NOTHING,
        PROBE,
        SEES,
        SERVE,
    )
    from ompy.runtime.exploration.pair import short_site

    if event.kind == SERVE:
        target, asker = event.key[0], event.value[1]
        if event.value[0] == SEES:
            target, asker = asker, target
        asked = f"what rank {asker} asked at {short_site(event.sent)}{_how_late(event.value)}"
        serves = f"rank {target}'s part of a window serves" if target >= 0 else "served is"
        return f"{serves} {asked}"
    where = f"rank {event.key[0]} at {short_site(event.site)}"
    if event.value == (NOTHING,):
        if event.kind == CANCEL:
            return f"{where} posts a receive that is cancelled before anything comes"
        return f"{where} finds nothing {'more' if event.kind == FURTHER else 'yet'}"
    if event.value[0] == FROM:
        does = "finds" if event.kind == PROBE else "takes"
        sent = short_site(event.sent)
        return f"{where} {does} the message that rank {event.value[1]} sent at {sent}"
    told = {ANY: "is told first of", FURTHER: "is told at the same time of"}
    return f"{where} {told.get(event.kind, 'finds complete')} its operation {event.value[1]}"


def _how_late(value: Value) -> str:
    """Of a read in a window: what is done before to the bytes that it reads."""
    from ompy.runtime.exploration.events import SEES
    from ompy.runtime.exploration.windows.box import place_of

    if value[0] != SEES:
        return ""
    place = place_of(value[2])
    return f" after {place} change{'s' if place != 1 else ''} of what it reads"


def _in_its_place(race: Race) -> str:
    from ompy.runtime.exploration.events import FROM, NOTHING, SEES, SERVE
    from ompy.runtime.exploration.pair import short_site

    if race.value[0] == SEES:
        return f"this served{_how_late(race.value)}"
    if race.event.kind == SERVE:
        return f"what rank {race.value[1]} asked at {short_site(race.site)} first"
    if race.value[0] == FROM:
        return f"the message that rank {race.value[1]} sent at {short_site(race.site)}"
    return "nothing yet" if race.value == (NOTHING,) else f"its operation {race.value[1]}"


def _save(options: dict[str, Any], failure: Failure, *, buffers: bool) -> None:
    from ompy.runtime.exploration.schedule_file import text_of

    kept = {event.key: event for event in failure.choices}
    if failure.turn is not None:
        kept[failure.turn.key] = failure.turn
    choices = [(one.key, one.value, one.site, said_of(one)) for one in kept.values()]
    checked = ["--check"] if options["check"] else []  # it keeps memory that MPI uses from writes
    about = about_world(options, checked, OTHERS_NETS)
    text = text_of(
        about,
        options["ranks"],
        failure.polls,
        choices,
        buffers=buffers,
        calls=failure.result.calls,
        parts=failure.parts,
    )
    program = Path(options["program"])
    path = Path(options["keep"]) / f"{program.stem}-schedule.json"
    try:
        os.makedirs(options["keep"], exist_ok=True)
        outputs.write_text(str(path), text)
    except OSError as problem:
        tell_user(f"warning: {path}: {problem.strerror}; the schedule is lost", "lost", "warning")
        return
    words = [*PROGRAM.split(), "-n", str(options["ranks"]), "--schedule", str(path)]
    words += checked
    for pair in options["mca"]:
        words += ["--mca", *pair]
    again = shlex.join([*words, options["program"], *options["arguments"]])
    text = f"the schedule is in {path}; again by: {again}"
    tell_user(text, "schedule", file=str(path))
    command = debugging_command(str(path), failure.result.text)
    tell_user(f"in a debugger: {command}", "kept", file=str(path))


def _draw(options: dict[str, Any], failure: Failure) -> None:
    from ompy.runtime.exploration.pair import pair_of
    from ompy.trace.drawing.schedule_pair import pair_svg, pair_text

    stem = Path(options["program"]).stem
    pair = pair_of(failure, f"{stem}: two schedules that differ in one decision")
    if pair is None:
        return
    picture = Path(options["keep"]) / f"{stem}.svg"
    try:
        outputs.write_text(str(picture), pair_svg(pair))
        outputs.write_text(str(picture.with_suffix(".txt")), pair_text(pair))
    except OSError as problem:
        tell_user(f"warning: {picture}: {problem.strerror}; nothing is drawn", "lost", "warning")
        return
    tell_user(f"both schedules are drawn in {picture} (as text: {stem}.txt)", "picture")
