"""Measuring one thing for messages of many sizes: options, how often, the table."""

from __future__ import annotations

import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from typing import Any, Final

POWERS: Final = 33  # mpi4py's: sizes are powers of two up to 4 GiB
Row = tuple[int, float, float]


def add_sizes(
    parser: ArgumentParser, *, smallest: int, largest: int, loops: tuple[int, ...]
) -> None:
    """The options of sizes and of how often each is measured.

    Args:
        parser: to add them to.
        smallest: bytes, if nothing is said.
        largest: bytes, if nothing is said.
        loops: how often small, large and huge ones are measured and, before that, tried; then the
            bytes above which one is large and huge.
    """
    loop, skip, loop_large, skip_large, loop_huge, skip_huge, large, huge = loops
    add = parser.add_argument
    add("-m", "--min-size", type=int, default=smallest, help="minimum message size")
    add("-n", "--max-size", type=int, default=largest, help="maximum message size")
    add("-s", "--skip", type=int, default=skip, help="number of warm-up iterations")
    add("-l", "--loop", type=int, default=loop, help="number of iterations")
    add("--skip-large", type=int, default=skip_large)
    add("--loop-large", type=int, default=loop_large)
    add("--large-size", type=int, default=large)
    add("--skip-huge", type=int, default=skip_huge)
    add("--loop-huge", type=int, default=loop_huge)
    add("--huge-size", type=int, default=huge)
    add("--no-header", action="store_false", dest="print_header")
    add("--no-stats", action="store_false", dest="print_stats")


def sizes_of(options: Namespace) -> Iterator[tuple[int, int, int]]:
    """Each size, how often it is measured, and how often it is tried before that."""
    loop, skip = options.loop, options.skip
    for size in (1 << power for power in range(POWERS)):
        if size > options.large_size:
            loop, skip = min(loop, options.loop_large), min(skip, options.skip_large)
        if size > options.huge_size:
            loop, skip = min(loop, options.loop_huge), min(skip, options.skip_huge)
        if options.min_size <= size <= options.max_size:
            yield size, loop, skip


def measured(size: int, loop: int, skip: int, measure: Callable[[], float]) -> Row:
    """A size, the mean of what was measured, and its deviation.

    Args:
        size: of the messages.
        loop: how often.
        skip: how often before that, which does not count.
        measure: does it once: seconds.
    """
    for _ in range(skip):
        measure()
    found = [measure() for _ in range(loop)]
    mean = statistics.mean(found) if found else float("nan")
    return size, mean, statistics.stdev(found) if len(found) > 1 else 0.0


class Table:
    """Rows that are printed as they are measured.

    Args:
        options: of the command.
        title: above the table.
        column: what is shown of a size, and its format.
        wanted: this rank is to print it.
    """

    def __init__(
        self, options: Namespace, title: str, column: tuple[str, str], wanted: bool
    ) -> None:
        self._options = options
        self._heading, self._format = column
        self._wanted = wanted
        self.rows: list[Row] = []
        if wanted and options.print_header:
            print(title)
            stats = " | Time Mean [s] \u00b1 StdDev [s]  Samples" if options.print_stats else ""
            print(f"# Size [B]  {self._heading}{stats}", flush=True)

    def add_row(self, row: Row, loop: int, shown: Any) -> None:
        """Note what was measured for a size.

        Args:
            row: as `measured` has it.
            loop: how often it was measured.
            shown: what is shown of it.
        """
        self.rows.append(row)
        if self._wanted:
            size, mean, deviation = row
            text = f"{size:10d}{shown:{self._format}}"
            if self._options.print_stats:
                text += f" | {mean:.7e} \u00b1 {deviation:.4e} {loop:8d}"
            print(text, flush=True)
