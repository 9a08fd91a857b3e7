"""What is compiled, and with which of the C compiler's optimisers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ompy.cli.forms import INLINE, PACKAGES

SHARED: Final = "ompy.cython_shared"  # module of Cython's own functions, which the others import
EXTENSION_SOURCE: Final = "_source.py"  # x_source.py writes the C of an extension x
OPTIMISER: Final = "-O1"  # measured, see README.md: half the compiler's time of -O2
# those in which a message of 8 bytes takes more instructions with -O1 than with -O2
BUSIEST: Final = {
    "ompy.data.convertor": "-O2",
    "ompy.data.request": "-O2",
    "ompy.net.ring": "-O2",
    "ompy.trace.sink": "-O2",
    "ompy_components.pml.ob1.matching": "-O2",
    "ompy_components.pml.ob1.receiving": "-O2",
}


def optimiser_of(name: str) -> str:
    """The option of the C compiler with which a module is compiled."""
    return BUSIEST.get(name, OPTIMISER)


def hot_modules(tree: Path) -> list[Path]:
    """The sources below `tree` with a declaration file beside them, sorted.

    Not those whose declaration files have it all and go into the modules that use them.

    Args:
        tree: the folder with the packages, or `core` or `components` of a clone.
    """
    found = (path for name in PACKAGES for path in (tree / name).rglob("*.pxd"))
    return sorted(
        path.with_suffix(".py")
        for path in found
        if path.stem not in INLINE and path.with_suffix(".py").exists()
    )


def dotted(tree: Path, path: Path) -> str:
    """The name under which a source below `tree` is imported."""
    return ".".join(path.relative_to(tree).with_suffix("").parts)


def extension_sources(tree: Path) -> list[Path]:
    """The modules that write the C of an extension beside them: `write(folder) -> Path`."""
    return sorted(
        path for name in PACKAGES for path in (tree / name).rglob(f"*?{EXTENSION_SOURCE}")
    )
