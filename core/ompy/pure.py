"""`OMPY_PURE=1`: the interpreted form of every hot module, also where it is compiled.

An extension module hides the source it was made of, because Python looks for extensions first.
This finder comes before Python's own and finds the sources.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Final

PACKAGES: Final = ("ompy.", "ompy_components.")


class SourceFinder(MetaPathFinder):
    """Finds the source of a module that also has an extension; of no other."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The source's spec, or None to let Python look."""
        if path is None or not fullname.startswith(PACKAGES):
            return None
        for folder in path:
            stem = os.path.join(folder, fullname.rpartition(".")[2])
            compiled = any(os.path.exists(stem + suffix) for suffix in EXTENSION_SUFFIXES)
            if compiled and os.path.exists(stem + ".py"):
                return spec_from_file_location(fullname, stem + ".py")
        return None


def install_sources() -> None:
    """From now on find sources. Before any hot module is imported."""
    sys.meta_path.insert(0, SourceFinder())
