"""The client's main module at its workers, where tasks look for its functions.

It is run there under the name `__worker__`, so that what stands behind `if __name__ ==
"__main__"` is not.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from types import CodeType, ModuleType
from typing import Any, Final

MAIN_RUN_NAME: Final = "__worker__"
_importing: list[str] = []


def being_imported() -> str | None:
    """The main module that this worker is just running; None at any other time."""
    return _importing[-1] if _importing else None


def main_place() -> tuple[str | None, str | None]:
    """How workers find this process's main module: by name, or by path; both may be None."""
    main = sys.modules["__main__"]
    sys.modules.setdefault(MAIN_RUN_NAME, main)
    name = getattr(getattr(main, "__spec__", None), "name", None)
    path = getattr(main, "__file__", None)
    if name == "__main__" and path is not None:  # of a folder or an archive
        return None, os.path.dirname(path)
    return name, path


def import_main(name: str | None, path: str | None, variables: Mapping[str, Any]) -> None:
    """Run the client's main module here.

    Args:
        name: of the module, if it was found by its name.
        path: of the script, folder or archive.
        variables: what is in the module before it runs.

    Raises:
        BaseException: what the module raises. Nothing has changed then.
    """
    module = ModuleType(MAIN_RUN_NAME)
    module.__dict__.update(variables)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = sys.modules[MAIN_RUN_NAME] = module
    _importing.append(str(name or path))
    try:
        code = _code(module, name, path)
        if code is not None:
            exec(code, module.__dict__)  # noqa: S102 - it is the user's program
    except BaseException:
        sys.modules["__main__"] = before
        raise
    finally:
        _importing.pop()


def _code(module: ModuleType, name: str | None, path: str | None) -> CodeType | None:
    """What is to be run, and the module told where it is from."""
    if name is not None:
        return _code_of_spec(module, name, None)
    if path is None:
        return None
    if os.path.isdir(path) or _is_archive(path):
        return _code_of_spec(module, "__main__", path)
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    module.__file__ = path
    with io.open_code(os.path.abspath(path)) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def _is_archive(path: str) -> bool:
    from pkgutil import get_importer

    importer = get_importer(path)
    return importer is not None and hasattr(importer, "find_spec")


def _code_of_spec(module: ModuleType, name: str, path: str | None) -> CodeType | None:
    """The code of a module that is found by its name, on the path or in one place."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    if path is None:
        spec = find_spec(name)
    else:
        sys.path.insert(0, path)
        spec = PathFinder.find_spec(name, [path])
    if spec is None or spec.loader is None or not hasattr(spec.loader, "get_code"):
        raise ImportError(f"a worker does not find the main module {name}", name=name)
    module.__spec__, module.__loader__ = spec, spec.loader
    module.__package__, module.__file__ = spec.parent, spec.origin
    code: CodeType | None = spec.loader.get_code(name)
    return code
