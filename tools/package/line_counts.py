#!/usr/bin/env python3
"""Lines of code by folder at an earlier commit and now, as a table in Markdown.

    python tools/package line_counts 3bb969e                all folders
    python tools/package line_counts 3bb969e --least 300    those that changed by so many

Lines of Python and of Cython's declarations, comments and blank ones included, as git has them in
the two commits. What is not committed does not count.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import click

from tools.repository import git

NOTHING: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name of a tree without files
SOURCES: Final = ("*.py", "*.pyi", "*.pxd")
# parts of a path that name a folder of the table, by its first; of others only the first counts
DEPTHS: Final = {"core": 3, "components": 3}


def folder_of(path: str) -> str:
    """The folder of the table that a file is counted in."""
    parts = path.split("/")[:-1] or ["."]
    return "/".join(parts[: DEPTHS.get(parts[0], 1)])


def lines_by_folder(numstat: str) -> Counter[str]:
    """Lines of what `git diff --numstat` says was added."""
    found: Counter[str] = Counter()
    for line in numstat.splitlines():
        added, _, path = line.split("\t")
        found[folder_of(path)] += int(added)
    return found


def lines_at(commit: str) -> Counter[str]:
    """Lines of a commit, by folder."""
    found = git("diff", "--numstat", "--no-renames", NOTHING, commit, "--", *SOURCES)
    if not found:
        raise click.ClickException(f"git knows no commit {commit}")
    return lines_by_folder(found)


def rows(before: Counter[str], after: Counter[str], least: int) -> list[str]:
    """The table: folders whose lines changed by `least` or more, and what all come to."""
    made = ["| folder | before | after | |", "|---|---|---|---|"]
    for folder in sorted({*before, *after}):
        change = after[folder] - before[folder]
        if abs(change) >= least:
            made.append(f"| {folder} | {before[folder]:,} | {after[folder]:,} | {change:+,} |")
    total = before.total(), after.total()
    made.append(f"| all | {total[0]:,} | {total[1]:,} | {total[1] - total[0]:+,} |")
    return made


@click.command(help=__doc__)
@click.argument("commit")
@click.option("--least", default=0, help="Lines by which a folder has changed to be shown.")
def main(commit: str, least: int) -> None:
    """Print the table."""
    print("\n".join(rows(lines_at(commit), lines_at("HEAD"), least)))


if __name__ == "__main__":
    main()
