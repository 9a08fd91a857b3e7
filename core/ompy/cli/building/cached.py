"""What was compiled once is not compiled again, where a folder is named to keep it in.

For whoever builds the same more than once: the gates of CI, a wheel from a clone and from an sdist.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ompy.cli.building.compiling import compile_modules as compile_all
from ompy.cli.building.compiling import compiler, suffix

MODULES: Final = "modules"  # the folder of single modules within that of whole builds


def build_or_copy(
    tree: Path, folder: str, optimiser: str = "", without: Sequence[str] = ()
) -> list[Path]:
    """Compile the hot modules of a tree into it, or take what is kept.

    Args:
        tree: the folder with the packages.
        folder: to keep it in; empty: it is not kept.
        optimiser: option of the C compiler; empty: as `modules.py` says.
        without: how names of modules, with a dot behind each, begin that stay interpreted.

    Returns:
        The extension files.

    Raises:
        As `compiling.compile_modules`.
    """
    if not folder:
        return compile_all(tree, tree, optimiser, without)
    kept = Path(folder, digest(tree, optimiser, without))
    if not kept.exists():
        begun = kept.with_name(f"{kept.name}.{os.getpid()}")
        compile_all(tree, begun, optimiser, without, Path(folder, MODULES))
        begun.rename(kept)
    shutil.copytree(kept, tree, dirs_exist_ok=True)
    return sorted(tree.rglob(f"*{suffix()}"))


def digest(tree: Path, optimiser: str, without: Sequence[str] = ()) -> str:
    """A name for all that decides what comes out: sources, Cython, Python, the compiler's call."""
    import Cython

    found = hashlib.sha256()
    words = [Cython.__version__, sys.version, optimiser, *without, *compiler()]
    found.update("\0".join(words).encode())
    for path in _read(tree):
        found.update(f"\0{path.relative_to(tree)}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:32]  # arbitrary: enough to be unique


def _read(tree: Path) -> list[Path]:
    """The files that a build may read, and those of the builder itself."""
    return sorted({*tree.rglob("*.py"), *tree.rglob("*.pxd")})
