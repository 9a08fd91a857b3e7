#!/usr/bin/env python3
"""Write the stubs of the drop-in package `mpi4py`, here and in the distribution `ompy-mpi4py`.

    python tools/package drop_in_stubs [--check]

A module that has its names from one of `ompy.addons` has a stub that says just that. The others'
are written by hand in `core/ompy/dropin/mpi4py`. The distribution has copies of all.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
DROP_IN = ROOT / "core" / "ompy" / "dropin" / "mpi4py"
COPIES = ROOT / "plugins-contrib" / "ompy-mpi4py" / "ompy_mpi4py_stubs" / "mpi4py"
SOURCES: Final = {
    "typing": "ompy.typing",
    "bench": "ompy.addons.bench",
    "futures/aplus": "ompy.addons.futures.chaining",
    "futures/util": "ompy.addons.futures.combining",
    "util/dtlib": "ompy.addons.dtlib",
    "util/pkl5": "ompy.addons.pkl5",
    "util/pool": "ompy.addons.pool",
    "util/sync": "ompy.addons.sync",
}


def main() -> None:
    """Write them, or exit 1 when one is not what would be written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 at a difference"
    )
    options = parser.parse_args()
    stale = 0
    for path, text in wanted().items():
        if path.exists() and path.read_text() == text:
            continue
        stale += 1
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        print(f"{'stale' if options.check else 'wrote'} {path.relative_to(ROOT)}")
    sys.exit(bool(options.check and stale))


def wanted() -> dict[Path, str]:
    """Every stub, here and in the distribution."""
    sys.path.insert(0, str(ROOT / "core"))
    texts = {DROP_IN / f"{name}.pyi": stub_of(source) for name, source in SOURCES.items()}
    for path in DROP_IN.rglob("*.pyi"):
        texts.setdefault(path, path.read_text())
    return {**texts, **{COPIES / path.relative_to(DROP_IN): text for path, text in texts.items()}}


def stub_of(source: str) -> str:
    """A stub with the names of a module."""
    found = importlib.import_module(source).__all__
    names = sorted(found, key=lambda name: (name[0].islower(), not name.isupper(), name))
    imports = [f"from {source} import {name} as {name}" for name in names]
    listed = ["__all__ = [", *(f'    "{name}",' for name in names), "]"]
    return "\n".join([*imports, "", *listed, ""])


if __name__ == "__main__":
    main()
