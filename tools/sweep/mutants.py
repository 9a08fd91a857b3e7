"""Damaged input for all that reads input: traces, scripts, files, lists, options.

    python tools/sweep mutants [--count N] [--seed S] [--only SUBJECT] [--show]

Each mutant is drawn by its seed, so one that is found is found again by `--seed S --count 1 --only
SUBJECT --show`. It is read in a process that may take a gigabyte more than it had, and ten seconds.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tests.support.damaged_input import mutant, words_of
from tests.support.mutant_subjects import SUBJECTS, give, option_values

MEMORY: Final = 1 << 30  # bytes; arbitrary: some hundred times what any reader takes
SECONDS: Final = 10  # of processor time; arbitrary: likewise
BATCH: Final = 200  # mutants of a process; arbitrary: a fork costs less than one of them

Action = Callable[[Path], object]


def actions(count: int, seed: int, only: str) -> Iterator[tuple[str, str, int, Action]]:
    """Every mutant: whose, which it is, its seed, and what reads it."""
    for name, subject in SUBJECTS.items():
        if only in ("", name):
            examples = subject.examples()
            for number in range(seed, seed + count):
                data = mutant(number, examples)
                yield name, repr(data[:300]), number, lambda f, s=subject, d=data: s.read(d, f)
    if only in ("", "options"):
        for words, option in option_values():
            for number in range(seed, seed + max(1, count // 50)):
                values = list(words_of(number, option.nargs))
                shown = f"{words} {option.opts[0]} {[v[:80] for v in values]}"
                yield (
                    "options",
                    shown,
                    number,
                    lambda f, w=words, o=option, v=values: give(w, o, v, f),
                )


def attempt(batch: list[tuple[str, str, int, Action]]) -> str:
    """Read them in a process of their own, up to the first defect. What that is, or nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _read(batch, writer)
    os.close(writer)
    with open(reader, "rb") as told:
        *_, last = (told.read().decode(errors="replace")).split("\0")
    _, status = os.waitpid(child, 0)
    return "" if status == 0 else f"{last}\nended with {os.waitstatus_to_exitcode(status)}"


def _read(batch: list[tuple[str, str, int, Action]], writer: int) -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    try:
        for name, shown, number, act in batch:
            os.write(writer, f"\0{name}, seed {number}: {shown}".encode(errors="backslashreplace"))
            with tempfile.TemporaryDirectory() as folder:
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                act(Path(folder))
                signal.setitimer(signal.ITIMER_PROF, 0)
    except BaseException:
        os.write(writer, ("\n" + traceback.format_exc()[-3000:]).encode(errors="backslashreplace"))
        os._exit(1)
    os._exit(0)


def sweep(count: int, seed: int, only: str = "", *, most: int = 20) -> tuple[int, list[str]]:
    """Read so many mutants for each reader. Returns how many there were, and the first defects."""
    every = list(actions(count, seed, only))
    defects: list[str] = []
    for begin in range(0, len(every), BATCH):
        batch = every[begin : begin + BATCH]
        if not attempt(batch):
            continue
        for one in batch:
            if (found := attempt([one])) and len(defects) < most:
                defects.append(found)
    return len(every), defects


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="mutants for each reader")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--only", default="", choices=["", *SUBJECTS, "options"])
    parser.add_argument("--show", action="store_true", help="print each mutant")
    options = parser.parse_args()
    if options.show:
        for name, shown, number, _ in actions(options.count, options.seed, options.only):
            print(name, number, shown)
    count, defects = sweep(options.count, options.seed, options.only)
    for defect in defects:
        print(defect, end="\n\n")
    print(f"{count} mutants, {len(defects)} defects")
    return int(bool(defects))


if __name__ == "__main__":
    sys.exit(main())
