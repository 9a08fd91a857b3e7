#!/usr/bin/env python3
"""The fault matrix of bfo: fragment x fault x moment x protocol, every possible cell run.

    python tools/sweep bfo_matrix              all cells, as a table
    python tools/sweep bfo_matrix --reasons    and why the others cannot be

Each cell is a world of its own in which the fault has to strike and the message has to arrive as it
was sent; `tests/support/fault_matrix.py` says what a cell is. Exit code 1 when one fails.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Final

from tests.support import fault_matrix

TOLD: Final = 100  # cells between two lines of progress; arbitrary


def main() -> None:
    """Run them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reasons", action="store_true", help="count the impossible, by reason")
    options = parser.parse_args()
    possible: Counter[tuple[str, str]] = Counter()
    passed: Counter[tuple[str, str]] = Counter()
    delivered: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    every = list(fault_matrix.cells())
    total = sum(not fault_matrix.impossible(cell) for cell in every)
    for cell in every:
        why = fault_matrix.impossible(cell)
        place = cell.fragment, cell.fault
        if why:
            reasons[why] += 1
            continue
        possible[place] += 1
        if possible.total() % TOLD == 0:
            print(f"cell {possible.total()} of {total}", file=sys.stderr, flush=True)
        try:
            delivered[place] += fault_matrix.run(cell)
            passed[place] += 1
        except Exception as error:
            print(f"FAILED {cell}: {type(error).__name__}: {error}", file=sys.stderr)
    show(possible, passed, delivered)
    if options.reasons:
        print(f"\n{reasons.total()} cells cannot be:")
        for why, count in reasons.most_common():
            print(f"{count:6}  {why}")
    sys.exit(0 if possible == passed else 1)


def show(
    possible: Counter[tuple[str, str]],
    passed: Counter[tuple[str, str]],
    delivered: Counter[tuple[str, str]],
) -> None:
    """Print passed/possible cells of each fragment under each fault, and the faults delivered."""
    faults = [fault for fault in fault_matrix.FAULTS if any(f == fault for _, f in possible)]
    print("| fragment | " + " | ".join(faults) + " | faults delivered |")
    print("|---|" + "---|" * (len(faults) + 1))
    for fragment in fault_matrix.FRAGMENTS:
        row = []
        for fault in faults:
            place = fragment, fault
            row.append(f"{passed[place]}/{possible[place]}" if possible[place] else "N/A")
        struck = sum(count for (name, _), count in delivered.items() if name == fragment)
        print(f"| {fragment} | " + " | ".join(row) + f" | {struck} |")
    print(
        f"\n{possible.total()} cells, {passed.total()} passed, {delivered.total()} faults delivered"
    )


if __name__ == "__main__":
    main()
