"""What is told and kept of a schedule that fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.cli.sim import PROGRAM, tell_user

if TYPE_CHECKING:
    from ompy.runtime.exploration.events import Event, Race
    from ompy.runtime.exploration.explorer import Explored, Failure

FAILED: Final = 1  # exit code where the world's own is 0; as any program that has failed
MODES: Final = {True: "with standard sends that buffer", False: "with standard sends that wait"}


def tell_failure(
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
