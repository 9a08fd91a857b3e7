#!/usr/bin/env python3
"""What bfo makes otherwise than ob1: each class it derives, each method, and how.

    python tools/package bfo_overrides                   a line for each method
    python tools/package bfo_overrides Sending.unknown   both texts of those with this name

`+` adds to what ob1 does (it calls ob1's method), `=` takes its place. Source: seed
bfo (11).
"""

from __future__ import annotations

import argparse
import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PML = ROOT / "components" / "ompy_components" / "pml"


@dataclass(frozen=True)
class Override:
    """One method of ob1 that bfo makes otherwise.

    Attributes:
        base, derived: class of ob1, class of bfo.
        method: its name.
        adds: it calls ob1's.
        before, after: both texts.
    """

    base: str
    derived: str
    method: str
    adds: bool
    before: str
    after: str

    @property
    def name(self) -> str:
        """Class and method, as ob1 calls them."""
        return f"{self.base}.{self.method}"


def classes(folder: Path) -> dict[str, tuple[ast.ClassDef, str]]:
    """The classes of a folder's modules, with the text of their module."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text()
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = node, text
    return found


def methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """The methods of a class."""
    return {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}


def overrides() -> Iterator[Override]:
    """All of them, in the order of bfo's files."""
    ob1, bfo = classes(PML / "ob1"), classes(PML / "bfo")
    for derived, (node, text) in bfo.items():
        for base in node.bases:
            name = base.id if isinstance(base, ast.Name) else ""
            if name not in ob1:
                continue
            theirs, their_text = ob1[name]
            old = methods(theirs)
            for method, mine in methods(node).items():
                if method not in old or method == "__init__":
                    continue
                before = ast.get_source_segment(their_text, old[method]) or ""
                after = ast.get_source_segment(text, mine) or ""
                adds = f"super().{method}(" in after or f"{name}.{method}(self" in after
                yield Override(name, derived, method, adds, before, after)


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", nargs="?", help="part of a name, such as Sending.unknown")
    name = parser.parse_args().name
    every = list(overrides())
    if name is not None and not any(name in found.name for found in every):
        known = ", ".join(found.name for found in every)
        parser.error(f"bfo makes nothing called {name!r} otherwise; there are {known}")
    for found in every:
        if name is None:
            print(f"{'+' if found.adds else '='} {found.name:<34} {found.derived}")
        elif name in found.name:
            before, after = found.before.splitlines(), found.after.splitlines()
            where = f"ob1 {found.name}", f"bfo {found.derived}.{found.method}"
            print("\n".join(difflib.unified_diff(before, after, *where, lineterm="")))


if __name__ == "__main__":
    main()
