#!/usr/bin/env python3
"""Compile the hot modules into a copy of the tree, to run the same tests on them.

    python tools/package compile_hot build/compiled [-O0]
    PYTHONPATH=build/compiled python -m pytest tests/sim

Which modules are hot is in `core/ompy/cli/hot.py`, how they are compiled and what it costs in
`core/ompy/cli/building/README.md`. The tree the tests usually run on is left alone.

A module that has not changed since it was compiled here, and whose declarations have not, is taken
from `build/cache`, or from the folder that `OMPY_BUILD_CACHE` names. An option for the C compiler's
optimiser takes the place of that of wheels.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [ROOT / "core" / "ompy", ROOT / "components" / "ompy_components"]


def build(target: Path, optimiser: str = "") -> list[Path]:
    """Copy the packages into `target` and compile their hot modules there.

    Args:
        target: the folder.
        optimiser: option of the C compiler; what wheels are made with if there is none.

    Returns:
        The extension files made.
    """
    sys.path.insert(0, str(ROOT / "core"))
    try:
        from ompy.cli.building import cached, compiling
    finally:
        sys.path.pop(0)

    target.mkdir(parents=True, exist_ok=True)
    compiling.copy_tree(SOURCES, target)
    shutil.copytree(ROOT / "configs", target / "ompy" / "configs", dirs_exist_ok=True)
    kept = os.environ.get("OMPY_BUILD_CACHE") or ROOT / "build" / "cache"
    made = compiling.compile_modules(target, target, optimiser, kept=Path(kept, cached.MODULES))
    for stale in {*target.rglob(f"*{compiling.suffix()}")} - {*made}:
        stale.unlink()
    return made


def main() -> None:
    """Build into the folder named on the command line."""
    options = [word for word in sys.argv[1:] if word.startswith("-O")]
    folders = [word for word in sys.argv[1:] if word not in options]
    if len(folders) != 1 or len(options) > 1 or folders[0].startswith("-"):
        sys.exit(__doc__)
    for made in build(Path(folders[0]).resolve(), *options):
        print(made)


if __name__ == "__main__":
    main()
