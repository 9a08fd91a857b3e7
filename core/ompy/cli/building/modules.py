"""What is compiled, and with which of the C compiler's optimisers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ompy.cli.forms import PACKAGES
from ompy.cli.hot import BINDINGS, HOT, INLINE, MODELS, OFTEN, WORLDS

EVERYTHING: Final = "OMPY_BUILD_ALL"  # variable: for machines that have what this one lacks
EXTENSION_SOURCE: Final = "_source.py"  # x_source.py writes the C of an extension x


def optimiser_of(name: str) -> str:
    """The option of the C compiler with which a module is compiled."""
    return HOT.get(name, OFTEN)


def left_out_here() -> tuple[str, ...]:
    """How the names of the modules begin that an installation from source leaves interpreted.

    Protocol models, and what drives a library that this machine does not have. A module of several
    of these groups is left out with all of them only. None where the environment asks for
    everything.
    """
    from ctypes.util import find_library

    if os.environ.get(EVERYTHING, "") not in ("", "0"):
        return ()
    wanted = {name for lib, names in BINDINGS.items() if find_library(lib) for name in names}
    groups = (MODELS, WORLDS, *BINDINGS.values())
    return tuple(dict.fromkeys(n for names in groups for n in names if n not in wanted))


def hot_modules(tree: Path) -> list[Path]:
    """The sources below `tree` that are compiled, sorted: those named, and those declared by hand.

    Not those whose declaration files have it all and go into the modules that use them.

    Args:
        tree: the folder with the packages, or `core` or `components` of a clone.
    """
    named = (tree.joinpath(*name.split(".")).with_suffix(".py") for name in HOT)
    declared = (
        path.with_suffix(".py") for name in PACKAGES for path in (tree / name).rglob("*.pxd")
    )
    found = {*named, *(path for path in declared if path.stem not in INLINE)}
    return sorted(path for path in found if path.exists())


def dotted(tree: Path, path: Path) -> str:
    """The name under which a source below `tree` is imported."""
    return ".".join(path.relative_to(tree).with_suffix("").parts)


def extension_sources(tree: Path) -> list[Path]:
    """The modules that write the C of an extension beside them, by `write_calls`."""
    return sorted(
        path for name in PACKAGES for path in (tree / name).rglob(f"*?{EXTENSION_SOURCE}")
    )
