#!/usr/bin/env python3
"""100,000 small worlds of messages over wires that lose, double, reorder and damage packets.

    python tools/lossy_sweep.py             all of them: under an hour of one core
    python tools/lossy_sweep.py --world N   one again, with its script

What a world is stands in `tests/support/lossy_worlds.py`. Goes on where an earlier run at the same
commit stopped. The first world that fails ends it with exit code 1; so does a class of worlds in
which a counter stayed 0. When all have passed, `docs/lossy-sweep.md` is written.
"""

from __future__ import annotations

import argparse
import json
import os
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

from tests.support import lossy_worlds

WORLDS: Final = 100_000  # arbitrary: what the project promises
SHARD: Final = 600  # worlds between two notes of how far it is; a turn of all classes
FIGURES: Final = ROOT / "docs" / "lossy-sweep.md"
COLUMNS: Final = {  # heading: counters that are summed
    "worlds": ("worlds",),
    "messages": ("messages",),
    "packets": ("num_total_sends",),
    "dropped": ("drop",),
    "doubled": ("duplicate",),
    "reordered": ("reorder",),
    "damaged": ("corrupt",),
    "resent": ("num_resends",),
    "by time": ("num_timeout_retrans",),
    "by ACK": ("num_fast_retrans",),
    "duplicates": ("num_dup_recvs", "num_oow_low_recvs"),
    "duplicate ACKs": ("num_dup_acks",),
    "window full": ("num_window_full",),
    "refused": ("num_crc_errors",),
    "past 65535": ("wraps",),
}

Sums = dict[str, Counter[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=WORLDS, help="how many")
    parser.add_argument("--world", type=int, help="only this one")
    parser.add_argument("--record", action="store_true", help="write the figures of fewer, too")
    options = parser.parse_args()
    if options.world is not None:
        again(options.world)
        return
    commit = commit_name()
    kept = ROOT / "build" / "sweep" / f"lossy-{commit}.json"
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
    kept.parent.mkdir(parents=True, exist_ok=True)
    # what is not committed may differ from one run to the next
    if not kept.exists() or kept.stem.endswith("+"):
        return 0, 0.0, {}
    first, seconds, sums = json.loads(kept.read_text())
    return first, seconds, {name: Counter(counts) for name, counts in sums.items()}


def shard(numbers: range, sums: Sums) -> None:
    """Run some worlds and add up what they counted; exit 1 at the first that fails."""
    for number in numbers:
        try:
            design, outcome = lossy_worlds.world(number)
        except Exception:
            traceback.print_exc()
            sys.exit(f"world {number} FAILED; again: python tools/lossy_sweep.py --world {number}")
        into = sums.setdefault(f"{design.traffic}, {design.wire}", Counter())
        into.update(outcome.counted)
        into.update(outcome.faults)
        into["worlds"] += 1


def again(number: int) -> None:
    """Run one world and show it, with its faults as they are drawn first."""
    design, dry = lossy_worlds.dry_run(number // lossy_worlds.GROUP)
    print(design)
    for rule in lossy_worlds.script(number, design, dry):
        print(rule)
    _, outcome = lossy_worlds.world(number)
    print(dict(outcome.faults), dict(outcome.counted))


def complain(sums: Sums) -> None:
    """Exit 1 if some class of worlds has not seen what it is there for."""
    silent = [
        f"{name}: {counter} stayed 0"
        for name, counts in sums.items()
        for counter in (*lossy_worlds.COUNTERS, *lossy_worlds.KINDS, "wraps")
        if not counts[counter]
    ]
    if silent:
        sys.exit("\n".join(silent))


def record(commit: str, seconds: float, sums: Sums) -> None:
    """Write the figures."""
    total = sum(sums.values(), Counter())
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    day = datetime.now(UTC).date().isoformat()
    lines = [
        "# The lossy sweep",
        "",
        "Written by `python tools/lossy_sweep.py`; `tests/support/lossy_worlds.py` says what a "
        "world is. None lost, doubled, reordered or",
        "altered a message, and each single fault struck. The numbers in the name of a class are "
        "the loss; duplicates, reordering and damage",
        "go up to 10 % beside it. Every world has some single faults as well.",
        "",
        f"{day}, commit {commit}, {machine}: {total['worlds']:,} worlds in {seconds:,.0f} s of "
        f"processor time, {total['bytes']:,} bytes in messages."
        + ("" if total["worlds"] >= WORLDS else f" NOT COMPLETE: a full sweep has {WORLDS:,}."),
        "",
        "| class | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    for name, counts in [*sums.items(), ("**all**", total)]:
        cells = [f"{sum(counts[counter] for counter in names):,}" for names in COLUMNS.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    FIGURES.write_text("\n".join(lines) + "\n")
    print(f"written to {FIGURES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
