"""Sweeps over numbered worlds: what the tools that run them have in common.

A world is a number and what is drawn from it. A sweep runs them in order, adds up what they count,
by class, and notes now and then how far it is, so a run that was cut off goes on where it stopped.
The first world that fails ends it with exit code 1, and so does a class that has not seen what it
is there for; `--keep-going` runs the others, too, and ends so when all have run. The figures of a
sweep that has come to its end are written to `docs/`. After each note stands the world that took
longest: where one takes a hundred times what the others do, something may look again and again.

A sweep belongs to one commit. `--next N` is for short runs on many days: N worlds from where the
last such run stopped, whatever the code, and from the first one again after the last. `--part 2/4`
is the second quarter, for sweeps that are too long for one sitting: see `parts.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from ompy.runtime.ranks.descendants import die_with_parent

from tools.repository import ROOT, commit_name
from tools.sweep import parts
from tools.sweep.parts import Sums

KEPT: Final = ROOT / "build" / "sweep"

World = tuple[str, Counter[str]]  # its class, and what it counted


@dataclass(frozen=True)
class WorldSweep:
    """What one tool runs.

    Attributes:
        name: of the tool, `python tools/sweep NAME`, and of its figures, `docs/NAME-sweep.md`.
        worlds: how many there are.
        shard: worlds between two notes.
        run: the world of a number, to its end: its class, and what it counted.
        show: the same once more, with all that is known of it.
        silent: what should have been counted and was not, in words.
        heading: of the figures: title and what a world is.
        columns: headings of the table, each with the counters that are summed.
        kinds: headings of a second table, a row for each name that these counters are of, as in
            `fault drop`, each with what the counters' names begin with.
    """

    name: str
    worlds: int
    shard: int
    run: Callable[[int], World]
    show: Callable[[int], object]
    silent: Callable[[Sums], Sequence[str]]
    heading: str
    columns: Mapping[str, Sequence[str]]
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def tool(self) -> str:
        """As it is typed."""
        return f"python tools/sweep {self.name}"

    @property
    def figures(self) -> Path:
        """Where they are written."""
        return ROOT / "docs" / f"{self.name}-sweep.md"

    @property
    def parts(self) -> Path:
        """Where its parts are kept."""
        return ROOT / "docs" / "sweeps" / f"{self.name}.json"


def stayed_zero(sums: Sums, wanted: Sequence[str], enough: int = 0) -> list[str]:
    """What classes of worlds have not seen of what they are there for.

    Args:
        sums: by class.
        wanted: counters that each class has to see.
        enough: worlds of a class from which on it has to.
    """
    return [
        f"{name}: {counter} stayed 0"
        for name, counts in sums.items()
        for counter in wanted
        if counts["worlds"] >= enough and not counts[counter]
    ]


def main(what: WorldSweep, description: str, words: Sequence[str] | None = None) -> None:
    """Run a sweep as the command line says."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=what.worlds, help="how many")
    parser.add_argument("--world", type=int, help="only this one, and show it")
    parser.add_argument("--jobs", type=int, default=1, help="worlds at a time; 1 by default")
    parser.add_argument("--next", type=int, help="only so many, after those of the last such run")
    parser.add_argument("--part", help="only this part of all: 2/4 is the second quarter")
    parser.add_argument("--keep-going", action="store_true", help="past worlds that fail")
    parser.add_argument("--record", action="store_true", help="write the figures of fewer, too")
    options = parser.parse_args(words)
    if options.world is not None:
        what.show(options.world)
        return
    if options.next is not None:
        sums = run_next(what, options.next, KEPT / f"{what.name}-next", options.jobs)
        _check(what, sums)
        print(passed(what, sums))
        return
    commit = commit_name()
    numbers = range(options.worlds)
    if options.part:
        try:
            numbers = parts.bounds(options.part, what.worlds)
        except ValueError as problem:
            parser.error(f"--part: {problem}")
    kept = KEPT / f"{what.name}-{commit}{f'-{numbers.start}' if numbers.start else ''}.json"
    seconds, sums, failed = run_all(
        what, numbers, kept, options.jobs, keep_going=options.keep_going
    )
    if failed:
        sys.exit(f"FAILED: worlds {', '.join(map(str, failed))}; one again: {what.tool} --world N")
    _check(what, sums)
    if options.part:
        _enter(what, numbers, commit, seconds, sums)
    elif options.worlds >= what.worlds or options.record:
        what.figures.write_text(document(what, f"{today()}, commit {commit}", seconds, sums))
        print(f"written to {what.figures}")

    print(passed(what, sums))


def _enter(what: WorldSweep, numbers: range, commit: str, seconds: float, sums: Sums) -> None:
    """Keep a part, and write the figures of all that there are."""
    part = parts.Part(numbers[0], numbers[-1], commit, today(), seconds, sums)
    every = parts.enter(what.parts, part)
    what.figures.write_text(document(what, parts.commits(every), *parts.together(every)))
    print(f"written to {what.figures}")


def _check(what: WorldSweep, sums: Sums) -> None:
    """Exit 1 when a class of worlds has not seen what it is there for."""
    if silent := what.silent(sums):
        sys.exit("\n".join(silent))


def passed(what: WorldSweep, sums: Sums) -> str:
    """That no world has failed, and what they have seen."""
    total = sum(sums.values(), Counter[str]())
    seen = [
        f"{sum(total[one] for one in names):,} {heading}"
        for heading, names in what.columns.items()
        if heading != "worlds"
    ]
    return f"all {total['worlds']:,} worlds passed: {', '.join(seen)}"


def run_all(
    what: WorldSweep, numbers: range, kept: Path, jobs: int = 1, *, keep_going: bool = False
) -> tuple[float, Sums, list[int]]:
    """Run the worlds that have not been run yet.

    Args:
        what: is run.
        numbers: of the worlds.
        kept: the notes.
        jobs: worlds at a time.
        keep_going: past a world that fails.

    Returns:
        Seconds of processor time, what was counted, and the worlds that failed.
    """
    kept.parent.mkdir(parents=True, exist_ok=True)
    first, seconds, sums, failed = resume(kept)
    first = max(first, numbers.start)
    while first < numbers.stop:
        last = min(first + what.shard, numbers.stop)
        begun = processor_seconds()
        ran = run_shard(what, range(first, last), sums, jobs, keep_going=keep_going)
        seconds += processor_seconds() - begun
        failed += ran.failed
        first = last
        kept.write_text(json.dumps([first, seconds, sums, failed]))
        longest = f"world {ran.longest} took {ran.most:.1f} s of them"
        print(f"{first} worlds in {seconds:.0f} s of processor time; {longest}", flush=True)
    return seconds, sums, failed


def run_next(what: WorldSweep, count: int, kept: Path, jobs: int = 1) -> Sums:
    """Run `count` worlds from the one that `kept` names, and note the one after them.

    The note moves on after each shard: a world that fails is tried again by the next run.
    """
    kept.parent.mkdir(parents=True, exist_ok=True)
    sums: Sums = {}
    while count:
        first = int(kept.read_text()) if kept.exists() else 0
        last = min(first + what.shard, first + count, what.worlds)
        run_shard(what, range(first, last), sums, jobs)
        count -= last - first
        kept.write_text(str(last % what.worlds))
        print(f"worlds {first} to {last - 1} passed", flush=True)
    return sums


def processor_seconds() -> float:
    """What this process has used, and those that it started and waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def resume(kept: Path) -> tuple[int, float, Sums, list[int]]:
    """How far an earlier run came: the next world, its seconds and sums, what has failed."""
    # what is not committed may differ from one run to the next
    if not kept.exists() or kept.stem.endswith("+"):
        return 0, 0.0, {}, []
    first, seconds, sums, failed = json.loads(kept.read_text())
    return first, seconds, {name: Counter(counts) for name, counts in sums.items()}, failed


@dataclass
class Shard:
    """What became of some worlds.

    Attributes:
        failed: those that did.
        longest: the one that took the most processor time.
        most: seconds of that.
    """

    failed: list[int] = field(default_factory=list)
    longest: int = -1
    most: float = 0.0


def run_shard(
    what: WorldSweep, numbers: range, sums: Sums, jobs: int = 1, *, keep_going: bool = False
) -> Shard:
    """Run some worlds, `jobs` at a time, and add up what they counted.

    Exit 1 when one fails, or with `keep_going` the next.
    """
    found = Shard()
    fork, dying = get_context("fork"), partial(die_with_parent, os.getpid())  # also when killed
    with ProcessPoolExecutor(jobs, fork, dying) if jobs > 1 else nullcontext() as pool:
        worlds = {
            number: pool.submit(timed, what.run, number).result
            if pool
            else partial(timed, what.run, number)
            for number in numbers
        }
        for number, outcome in worlds.items():
            try:
                seconds, (name, counted) = outcome()
            except Exception:
                traceback.print_exc()
                found.failed.append(number)
                if keep_going:
                    continue
                if pool:
                    pool.shutdown(cancel_futures=True)
                sys.exit(f"world {number} FAILED; again: {what.tool} --world {number}")
            if seconds >= found.most:
                found.longest, found.most = number, seconds
            into = sums.setdefault(name, Counter())
            into.update(counted)
            into["worlds"] += 1
    return found


def timed(run: Callable[[int], World], number: int) -> tuple[float, World]:
    """Run a world. Returns the seconds of processor time that it took, and what it has counted."""
    begun = processor_seconds()
    counted = run(number)
    return processor_seconds() - begun, counted


def today() -> str:
    """The day, UTC."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def document(what: WorldSweep, when: str, seconds: float, sums: Sums) -> str:
    """The figures: a row for each class, and one for all.

    Args:
        what: was run.
        when: with which commit, and on which day.
        seconds: of processor time.
        sums: what was counted.
    """
    total = Counter[str]()
    for counts in sums.values():
        total.update(counts)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    lines = [
        what.heading,
        "",
        f"`{what.tool}`, {when}, {machine}: "
        f"{total['worlds']:,} worlds in {seconds:,.0f} s of processor time"
        + (f", {total['bytes']:,} bytes in messages." if total["bytes"] else ".")
        + ("" if total["worlds"] >= what.worlds else f" NOT COMPLETE: all are {what.worlds:,}."),
        "",
        "| class | " + " | ".join(what.columns) + " |",
        "|---|" + "---:|" * len(what.columns),
    ]
    for name, counts in [*sums.items(), ("**all**", total)]:
        cells = [f"{sum(counts[one] for one in names):,}" for names in what.columns.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    if what.kinds:
        names = {
            one.removeprefix(prefix)
            for prefix in what.kinds.values()
            for one in total
            if one.startswith(prefix)
        }
        lines += ["", "| | " + " | ".join(what.kinds) + " |", "|---|" + "---:|" * len(what.kinds)]
        for name in sorted(names):
            cells = [f"{total[prefix + name]:,}" for prefix in what.kinds.values()]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
