"""The compiled form of the hot modules: all are in one shared object, `ompy.compiled_modules`.

Python looks for an extension module in a file of its own. This finder comes first, and takes those
modules from the shared object, of which there is one in a compiled installation and none in an
interpreted one. `ompy/cli/building/linking.py` writes and links it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # `ompy --version` imports next to nothing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

OBJECT = "ompy.compiled_modules"


class CompiledModules:
    """Finder and loader of the modules in a shared object.

    What it finds says of itself to be in the file of its source (`__file__`), from which data
    beside it and its text are found.
    """

    def __init__(self, shared_object: Any) -> None:
        """Find the modules that the object has, for packages in the folder its own is in."""
        self._object = shared_object
        self._names = frozenset(shared_object.names())
        self._root = os.path.join(os.path.dirname(os.path.dirname(shared_object.__file__)), "")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The compiled module's spec, or None to let Python look."""
        if fullname not in self._names or path is None:
            return None
        folder = next(iter(path), "")
        if not folder.startswith(self._root):
            return None  # a package from elsewhere comes with its own
        source = os.path.join(folder, f"{fullname.rpartition('.')[2]}.py")
        spec = ModuleSpec(fullname, self, origin=source)  # type: ignore[arg-type]
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, empty but for what it is called and where it is from."""
        made: ModuleType = self._object.create(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Run what the module does when it is imported."""
        self._object.execute(module)


def shared_object() -> Any:
    """The shared object, loaded; None where nothing is compiled.

    Raises:
        ImportError: there is one, which cannot be loaded.
    """
    try:
        return import_module(OBJECT)
    except ModuleNotFoundError:
        return None


def install_finder() -> None:
    """From now on find compiled modules. Before any of them is imported."""
    found = shared_object()
    if found is not None:
        sys.meta_path.insert(0, CompiledModules(found))


def is_compiled(name: str) -> bool:
    """Whether a module that is imported, or being imported, is the compiled form."""
    return isinstance(sys.modules[name].__loader__, CompiledModules)
