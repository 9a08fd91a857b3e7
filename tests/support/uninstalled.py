"""Interpreters in which a distribution is not installed, though it is in their site-packages.

A `sitecustomize` on the Python path hides its modules and its metadata from every process that a
command starts: nothing is found, as where nobody has installed it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections import defaultdict
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
import sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in {modules!r}:
            return super().find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, context=None):
        found = PathFinder.find_distributions(*([context] if context else []))
        return (one for one in found if one.name.lower() not in {names!r})

sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
"""


def optional() -> dict[str, str]:
    """Every distribution that only an extra brings to a user, and the extra's name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {
        re.split(r"[^\w.-]", line, maxsplit=1)[0]: extra
        for extra, lines in project["optional-dependencies"].items()
        if extra != "dev"  # what it has beyond the others is imported by tests and tools only
        for line in lines
    }


def without(folder: Path, *distributions: str) -> dict[str, str]:
    """The environment of a command that is not to find these distributions.

    Args:
        folder: for the module that hides them.
        distributions: their names; one that is not installed here is hidden by its own name.
    """
    modules = defaultdict(list)
    for module, offered_by in metadata.packages_distributions().items():
        for name in offered_by:
            modules[name.lower()].append(module)
    names = {name.lower() for name in distributions}
    hidden = {module for name in names for module in modules.get(name, [name])}
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(SOURCE.format(modules=hidden, names=names))
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}
