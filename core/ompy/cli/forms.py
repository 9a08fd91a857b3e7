"""Whether the modules on the way of a message run compiled or interpreted.

Nothing of them is imported, and next to nothing else.
"""

from __future__ import annotations

import os

import ompy
from ompy import compiled_loader
from ompy.cli.hot import BINDINGS, HOT, MODELS, SHARED, WORLDS

PACKAGES = ("ompy", "ompy_components")  # the import roots of this distribution
SLOWER = "small messages take about ten times as long as compiled, large ones the same"
# groups of `hot.py`, and why an installation from source leaves one interpreted
LEFT_OUT = (
    (MODELS, "the protocol models {} are interpreted, which most jobs never use"),
    (WORLDS, "what explores worlds over {} is interpreted, which jobs never use"),
    (
        BINDINGS["fabric"],
        "those of {} are interpreted: libfabric was not on the machine when they were installed",
    ),
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def described() -> str:
    """For people: which form, of how many modules, and what decided it if not the installation."""
    forms = hot_modules().values()
    if not any(forms):
        return f"interpreted ({len(forms)} modules)"
    if ompy.PURE:
        return f"interpreted ({len(forms)} modules; OMPY_PURE is set, {sum(forms)} are compiled)"
    return f"compiled ({sum(forms)} of {len(forms)} modules)"


def advice() -> str:
    """What is interpreted, what that costs and how it becomes compiled; empty if nothing is.

    `SLOWER` is the ratio of 8 bytes over sm in docs/performance.md.
    """
    forms = hot_modules().values()
    if ompy.PURE or all(forms):
        return ""
    if any(forms):
        return "; ".join([*_left_out(), "`ompy build` compiles the rest"])
    if is_editable():
        return f"{SLOWER}; an editable installation is never compiled, `pip install .` is"
    return f"{SLOWER}; `ompy build` compiles this installation where it is"


def _left_out() -> Iterator[str]:
    """Of each group that is interpreted in part: which of its components are, and why."""
    names = [name for name, compiled in hot_modules().items() if not compiled]
    for group, why in LEFT_OUT:
        parts = (part.strip(".") for part in group if part.startswith(PACKAGES[1]))
        found = [part for part in parts if any(name.startswith(f"{part}.") for name in names)]
        if found:
            yield why.format(", ".join(part.partition(".")[2].replace(".", "/") for part in found))


def is_editable() -> bool:
    """Whether the sources that run are those of somebody's working copy.

    An installer writes what it knows of a distribution beside the packages it copies; beside the
    packages of a working copy, or of a tree on the Python path, nobody does. `importlib.metadata`
    would tell as well, but takes longer to import than all of the answer.
    """
    beside = os.path.dirname(os.path.dirname(os.path.abspath(ompy.__file__)))
    return not any(
        name.startswith("ompy-") and name.endswith(".dist-info") for name in os.listdir(beside)
    )


def hot_modules() -> dict[str, bool]:
    """The modules on the way of a message, and whether this installation has each compiled."""
    found = compiled_loader.shared_object()
    compiled = frozenset(found.names() if found else ())
    return {name: name in compiled for name in HOT if name != SHARED}
