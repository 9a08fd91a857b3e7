#!/usr/bin/env python3
"""What GASNet's test programs check, over both conduits and both variants: the table in docs.

    python tools/gasnet_table.py [--seeds 3] [--write]

Every program of `tests/support/gasnet_programs.py` runs in a virtual world for each seed, over each
conduit of `tests/support/gasnet_worlds.py` but the late ones. `--write` replaces the table of
`docs/gasnet-tests.md`.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from sweep import ROOT

sys.path.insert(0, str(ROOT))  # for the programs, which are the tests' own

from tests.support.gasnet_programs import PROGRAMS, Program
from tests.support.gasnet_worlds import CONDUITS, Under, run

SEEDS: Final = 3  # arbitrary: what docs/gasnet-tests.md shows, in a few minutes of one core
DOCUMENT: Final = ROOT / "docs" / "gasnet-tests.md"
# those whose NIC does everything late take long: the nightly run has them
COLUMNS: Final = {name: under for name, under in CONDUITS.items() if not under.nic}
HEAD: Final = "| program | GASNet's | ranks |"


def main() -> None:
    options = argparse.ArgumentParser(description="GASNet's tests over every conduit.")
    options.add_argument("--seeds", type=int, default=SEEDS, help="worlds for each cell")
    options.add_argument("--write", action="store_true", help="replace the table in docs")
    chosen = options.parse_args()
    table = [HEAD + "".join(f" {name} |" for name in COLUMNS)]
    table.append("|---" * (3 + len(COLUMNS)) + "|")
    failed = 0
    for name, program in PROGRAMS.items():
        cells = [cell(program, under, chosen.seeds) for under in COLUMNS.values()]
        failed += sum(not text.endswith("worlds") for text in cells)
        table.append(f"| `{name}` | {program.follows} | {program.ranks} | {' | '.join(cells)} |")
        print(table[-1], flush=True)
    if chosen.write:
        text = DOCUMENT.read_text()
        DOCUMENT.write_text(text[: text.index(HEAD)] + "\n".join(table) + "\n")
    sys.exit(failed > 0)


def cell(program: Program, under: Under, seeds: int) -> str:
    """How a program did: the worlds it passed, or the seed that it failed at and why."""
    for seed in range(seeds):
        try:
            run(under, program.ranks, program.run, seed=seed)
        except Exception as problem:
            return f"seed {seed}: {str(problem).splitlines()[0][:80]}"
    return f"{seeds} worlds"


if __name__ == "__main__":
    main()
