#!/usr/bin/env python3
"""Whether what bfo replaces in ob1 has changed since bfo was last reviewed.

    python tools/package ob1_changed             what has changed, exit code 1 if anything has
    python tools/package ob1_changed --accept    bfo has been reviewed: this is the state

What bfo inherits or adds to is mended with ob1. The methods of ob1 in whose place bfo has its own
(`tools/package bfo_overrides`, `=`) are not: whoever mends one looks whether bfo's has to be mended
too, and accepts. Comments and docstrings do not count. Source: seed bfo (11).
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from textwrap import dedent
from tokenize import COMMENT, generate_tokens

from tools.package.bfo_overrides import PML, Override, overrides

REVIEWED = PML / "bfo" / "reviewed.json"


def state(every: Iterable[Override] | None = None) -> dict[str, str]:
    """A hash of every method of ob1 that bfo replaces, by class and name."""
    found = overrides() if every is None else every
    return {one.name: digest(one.before) for one in found if not one.adds}


def digest(text: str) -> str:
    """Of what a method does, whatever is said about it; the same in every Python."""
    lines = dedent(text).splitlines()
    for token in generate_tokens(StringIO("\n".join(lines)).readline):
        if token.type == COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    (method,) = ast.parse("\n".join(lines)).body
    assert isinstance(method, ast.FunctionDef)
    if ast.get_docstring(method) is not None:
        said = method.body[0]
        del lines[said.lineno - 1 : said.end_lineno]
    return hashlib.sha256("".join("".join(lines).split()).encode()).hexdigest()[:16]


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What became of the methods, a line each."""
    lines = [f"new: {name}" for name in now.keys() - before.keys()]
    lines += [f"gone: {name}" for name in before.keys() - now.keys()]
    both = now.keys() & before.keys()
    lines += [f"changed: {name}" for name in both if now[name] != before[name]]
    return sorted(lines)


def reviewed() -> dict[str, str]:
    """The state that bfo was reviewed against."""
    found: dict[str, str] = json.loads(Path(REVIEWED).read_text())
    return found


def main() -> None:
    """Compare, or accept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--accept", action="store_true", help="bfo has been reviewed")
    now = state()
    if parser.parse_args().accept:
        REVIEWED.write_text(json.dumps(dict(sorted(now.items())), indent=1) + "\n")
        print(f"{len(now)} methods of ob1 are those that bfo was reviewed against")
        return
    found = differences(reviewed(), now)
    print("\n".join(found) or "ob1 is as it was when bfo was reviewed")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
