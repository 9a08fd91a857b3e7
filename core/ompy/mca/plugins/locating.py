"""Where the source of an entry point's target lies, found without importing anything of it.

Reports show it. What is looked at is what an import would look at, so of two packages with one
name the file shown is the one Python would take.
"""

from __future__ import annotations

import sys


def source_file(target: str) -> str:
    """The file of the module that `module:attribute` names; empty when there is none to be found.

    No package on the way is imported: theirs may be what is broken.
    """
    try:
        return _file_of(target.partition(":")[0])
    except Exception:  # whatever a finder or an odd `__spec__` does: a report goes on without
        return ""


def _file_of(module: str) -> str:
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    loaded = sys.modules.get(module)
    if loaded is not None:
        return getattr(loaded, "__file__", None) or ""
    top, *inner = module.split(".")
    spec = find_spec(top)  # of a top-level name: looks, and runs none of it
    name = top
    for part in inner:
        if spec is None or spec.submodule_search_locations is None:
            return ""
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    return spec.origin or "" if spec is not None and spec.has_location else ""
