#!/usr/bin/env python3
"""What the compiler is told of a module, derived from its annotations.

    python tools/package declarations ompy.net.memory.ring
    python tools/package declarations --source ompy.net.memory.ring    the source as it is compiled

How: `core/ompy/cli/building/README.md`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "core"))

from ompy.cli.building.compiling import copy_tree  # noqa: E402 - the folder is named first
from ompy.cli.building.preparing import write_sources  # noqa: E402
from ompy.cli.hot import HOT, SHARED  # noqa: E402

from tools.package.compile_hot import SOURCES  # noqa: E402


def derived(name: str, suffix: str) -> str:
    """What is written of a module for the compiler.

    Args:
        name: of the module.
        suffix: `.pxd` for the declarations, `.py` for the source.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree, target = Path(folder, "tree"), Path(folder, "prepared")
        copy_tree(SOURCES, tree)
        write_sources(tree, target)
        return target.joinpath(*name.split(".")).with_suffix(suffix).read_text()


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser("tools/package declarations", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("module", choices=sorted(HOT.keys() - {SHARED}), metavar="MODULE")
    parser.add_argument("--source", action="store_true", help="the source instead")
    options = parser.parse_args()
    print(derived(options.module, ".py" if options.source else ".pxd"), end="")


if __name__ == "__main__":
    main()
