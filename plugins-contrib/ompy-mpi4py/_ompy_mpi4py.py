"""Finds ompy's drop-in package when `mpi4py` is imported and nothing else has that name.

`ompy_mpi4py.pth` imports this when Python starts, so it does next to nothing then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

NAME = "mpi4py"


class LastResort:
    """A finder that answers for `mpi4py` when no other does.

    It stands before all others, as the path's own finder would take the folder of the stubs for a
    package without files.
    """

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where mpi4py is, a real one or the drop-in package; None for any other name.

        A real one is answered for, too: the path's own finder may stand before the one that has it.
        """
        if name != NAME:
            return None
        real = _asked(NAME, path, target)
        if real is not None:
            return real
        ompy = _asked("ompy", path, target)
        if ompy is None or ompy.origin is None:
            return None
        folder = os.path.join(os.path.dirname(ompy.origin), "dropin")
        return PathFinder.find_spec(name, [folder])


def _asked(name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    """What the other finders have under a name, folders without files left out."""
    for finder in sys.meta_path:
        if finder is LastResort:
            continue
        find = getattr(finder, "find_spec", None)
        found = None if find is None else find(name, path, target)
        if found is not None and found.origin is not None:
            return found
    return None


def install() -> None:
    """Put the finder in its place, once."""
    if LastResort not in sys.meta_path:
        sys.meta_path.insert(0, LastResort)


install()
