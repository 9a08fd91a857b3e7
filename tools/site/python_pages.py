"""Reference: the Python API; Sphinx's autodoc reads the docstrings."""

from __future__ import annotations

import enum
import importlib
import inspect
from typing import Any, Final

ON_ONE_PAGE: Final = 15  # classes of a module; arbitrary: of MPI and GASNet there are more
MODULES: Final = {
    "MPI": ("ompy.MPI", "`from mpi4py import MPI` under `ompy-run` is this module."),
    "gasnet": ("ompy.gasnet", ""),
    "pvars": ("ompy.pvars", ""),
    "futures": ("ompy.addons.futures", "`mpi4py.futures` under `ompy-run` is this module."),
    "pkl5": ("ompy.addons.pkl5", "`mpi4py.util.pkl5` under `ompy-run` is this module."),
    "sync": ("ompy.addons.sync", "`mpi4py.util.sync` under `ompy-run` is this module."),
    "dtlib": ("ompy.addons.dtlib", "`mpi4py.util.dtlib` under `ompy-run` is this module."),
    "pool": ("ompy.addons.pool", "`mpi4py.util.pool` under `ompy-run` is this module."),
    "btl": ("ompy.frameworks.btl", "The contract of a BTL: what a component author implements."),
    "pml": ("ompy.frameworks.pml", "The contract of a PML."),
    "coll": ("ompy.frameworks.coll", "The contract of a component of collectives."),
}


def pages() -> dict[str, str]:
    """A page for each public module, and a list of them."""
    shown: set[type] = set()
    made: dict[str, str] = {}
    for name, about in MODULES.items():
        made |= module_pages(name, *about, shown)
    lines = ["# Python API", "", "Made from the docstrings of the public modules.", ""]
    lines += ["```{toctree}", ":maxdepth: 1", "", *MODULES, "```", ""]
    made["python/index.md"] = "\n".join(lines)
    return made


def module_pages(page: str, name: str, remark: str, shown: set[type]) -> dict[str, str]:
    """A module: its functions, and its classes with what they do not have from another one of it.

    Many classes have a page each, as a browser takes long for two thousand entries.

    Args:
        page: the name of the module's page.
        name: the module's.
        remark: what is said above its docstring.
        shown: classes that another page has; those of this one are added.
    """
    public = _public(importlib.import_module(name))
    classes = {
        key: value for key, value in public.items() if inspect.isclass(value) and value not in shown
    }
    shown |= set(classes.values())
    functions = [key for key, value in public.items() if inspect.isroutine(value) and _about(value)]
    lines = [*_title(name, "="), *([remark.replace("`", "``"), ""] if remark else [])]
    lines += [f".. automodule:: {name}", "   :no-members:", "", *_module(name)]
    if functions:
        lines += _title("Functions", "-")
        lines += [line for key in functions for line in (f".. autofunction:: {key}", "")]
    texts = {key: _of_class(key, value, list(classes.values())) for key, value in classes.items()}
    made = {}
    if len(texts) > ON_ONE_PAGE:
        lines += [*_title("Classes", "-"), ".. toctree::", "   :maxdepth: 1", ""]
        lines += [*(f"   {page}/{key}" for key in texts), ""]
        for key, text in texts.items():
            made[f"python/{page}/{key}.rst"] = "\n".join([*_title(key, "="), *_module(name), *text])
    elif texts:
        lines += _title("Classes", "-") + [line for text in texts.values() for line in text]
    constants = [key for key in public if key not in classes and key not in functions]
    if constants:
        lines += [*_title("Constants and objects", "-")]
        lines += [", ".join(f"``{key}``" for key in constants), ""]
    return {f"python/{page}.rst": "\n".join(lines), **made}


def _title(text: str, mark: str) -> list[str]:
    return [text, mark * len(text), ""]


def _module(name: str) -> list[str]:
    return [f".. currentmodule:: {name}", ""]


def _public(module: Any) -> dict[str, Any]:
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            key
            for key, value in vars(module).items()
            if not key.startswith("_")
            and not inspect.ismodule(value)
            and not _foreign(value, module.__name__)
        ]
    found = {key: getattr(module, key) for key in names}
    return {key: value for key, value in found.items() if not _of_library(value)}


def _of_library(value: Any) -> bool:
    """Whether a function or class is Python's own, handed on."""
    home = getattr(value, "__module__", None) or ""
    return callable(value) and isinstance(home, str) and not home.startswith("ompy")


def _foreign(value: Any, module: str) -> bool:
    """Whether a thing was only imported for the module's own use."""
    home = getattr(value, "__module__", "") or ""
    if not isinstance(home, str) or not home.startswith("ompy"):
        return True
    facade = module in ("ompy.MPI", "ompy.gasnet", "ompy.addons.futures")
    return not facade and home != module


def _of_class(name: str, kind: type, classes: list[type]) -> list[str]:
    others = {base for base in kind.__mro__[1:] if base in classes}
    had = {key for base in others for key in dir(base)}
    had |= {key for base in kind.__mro__ if base.__module__ == "builtins" for key in dir(base)}
    own = [key for key in dir(kind) if not key.startswith("_") and key not in had]
    if issubclass(kind, enum.Enum):
        own = [member.name for member in kind]
    lines = [f".. autoclass:: {name}", "   :show-inheritance:"]
    if own:
        lines += [f"   :members: {', '.join(own)}", "   :undoc-members:"]
        lines += [] if issubclass(kind, enum.Enum) else ["   :inherited-members:"]
    return [*lines, ""]


def _about(value: Any) -> str:
    return inspect.getdoc(value) or ""
