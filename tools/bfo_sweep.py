#!/usr/bin/env python3
"""A million small worlds of bfo whose rails die in the middle of everything.

    python tools/bfo_sweep.py               all of them: some hours of one core
    python tools/bfo_sweep.py --worlds N    the first N
    python tools/bfo_sweep.py --world N     one again, with what strikes it

What a world is stands in `tests/support/failing_worlds.py`. Goes on where an earlier run at the
same commit stopped. The first world that fails ends it with exit code 1; so does a class of worlds
in which a kind of fault never struck. When all have passed, `docs/bfo-sweep.md` is written.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sweep import ROOT, commit_name

sys.path.insert(0, str(ROOT))  # for the worlds, which are the tests' own

from tests.support import failing_worlds
from tests.support.failing_rails import KINDS

WORLDS: Final = 1_000_000  # arbitrary: what the project promises
SHARD: Final = len(failing_worlds.CLASSES) * failing_worlds.GROUP * 10  # between two notes
FIGURES: Final = ROOT / "docs" / "bfo-sweep.md"
COLUMNS: Final = {  # heading: counters that are summed
    "worlds": ("worlds",),
    "messages": ("messages",),
    "lost": ("lost",),
    "error but delivered": ("error",),
    "late": ("late",),
    "twice": ("twice",),
    "refused": ("refused",),
    "rail events": ("rail events",),
    "NOTIFY": ("> RNDVRESTARTNOTIFY",),
    "RECVERRNOTIFY": ("> RECVERRNOTIFY",),
    "NACK": ("> RNDVRESTARTNACK",),
    "dropped": ("MATCH", "RNDV", "RGET", "FIN", "FRAG", "ACK", "PUT"),
    "all rails gone": ("all rails gone",),
}

Sums = dict[str, Counter[str]]


def main() -> None:
    """Run them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=WORLDS, help="how many")
    parser.add_argument("--world", type=int, help="only this one")
    parser.add_argument("--record", action="store_true", help="write the figures of fewer, too")
    options = parser.parse_args()
    if options.world is not None:
        again(options.world)
        return
    commit = commit_name()
    kept = ROOT / "build" / "sweep" / f"bfo-{commit}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    first, seconds, sums = resume(kept)
    while first < options.worlds:
        last = min(first + SHARD, options.worlds)
        begun = time.process_time()
        shard(range(first, last), sums)
        seconds += time.process_time() - begun
        first = last
        kept.write_text(json.dumps([first, seconds, sums]))
        print(f"{first} worlds in {seconds:.0f} s of processor time", flush=True)
    complain(sums)
    if options.worlds >= WORLDS or options.record:
        record(commit, seconds, sums)


def resume(kept: Path) -> tuple[int, float, Sums]:
    """How far an earlier run came: the next world, its seconds and its sums."""
    if not kept.exists() or kept.stem.endswith("+"):  # what is not committed may differ
        return 0, 0.0, {}
    first, seconds, sums = json.loads(kept.read_text())
    return first, seconds, {name: Counter(counts) for name, counts in sums.items()}


def shard(numbers: range, sums: Sums) -> None:
    """Run some worlds and add up what they counted; exit 1 at the first that fails."""
    for number in numbers:
        try:
            design, outcome = failing_worlds.world(number)
        except Exception:
            traceback.print_exc()
            sys.exit(f"world {number} FAILED; again: python tools/bfo_sweep.py --world {number}")
        into = sums.setdefault(f"{design.traffic}, {design.kind}", Counter())
        into.update(outcome.counted)
        into["worlds"] += 1


def again(number: int) -> None:
    """Run one world and show it."""
    design, transfers = failing_worlds.dry_run(number // failing_worlds.GROUP)
    for rail in design.rails:
        print(rail)
    for program in design.programs:
        print(program)
    for fault in failing_worlds.script(number, design, transfers):
        print(fault)
    print(dict(failing_worlds.world(number)[1].counted))


def complain(sums: Sums) -> None:
    """Exit 1 if in some class of worlds a kind of fault never struck."""
    missing = [
        f"{name}: {kind}"
        for name, counts in sums.items()
        for kind in KINDS
        if counts["worlds"] >= SHARD // len(failing_worlds.CLASSES) and not counts[kind]
    ]
    if missing:
        sys.exit("faults that never struck: " + "; ".join(missing))


def record(commit: str, seconds: float, sums: Sums) -> None:
    """Write the figures."""
    total: Counter[str] = Counter()
    for counts in sums.values():
        total.update(counts)
    lines = [
        "# bfo under random faults",
        "",
        f"`python tools/bfo_sweep.py`, commit {commit}, {datetime.now(UTC):%Y-%m-%d}, Python "
        f"{platform.python_version()}: {total['worlds']} worlds in {seconds:.0f} s of processor",
        "time. Every message arrived once, in order, with all its bytes; no rank hung, and nothing "
        "was left behind.",
        "",
        "| programs, rails | " + " | ".join(COLUMNS) + " |",
        "|---|" + "---:|" * len(COLUMNS),
    ]
    for name, counts in [*sorted(sums.items()), ("all", total)]:
        figures = [sum(counts[counter] for counter in names) for names in COLUMNS.values()]
        lines.append(f"| {name} | " + " | ".join(map(str, figures)) + " |")
    FIGURES.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
