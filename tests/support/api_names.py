"""What a module `mpi4py.MPI` has: names, members of classes, parameters. Prints JSON.

It runs in the interpreter of the module that is asked, so it imports nothing of this project:

    python tests/support/api_names.py > tests/interop/mpi4py_names.json
"""

from __future__ import annotations

import inspect
import json
from typing import Any

# how Python keeps the members of a class, and what that is for users
KINDS = {
    "getset_descriptor": "property",
    "property": "property",
    "classmethod": "class",
    "classmethod_descriptor": "class",
    "staticmethod": "class",  # of a class: whether it is told which one is of no matter
}
EVERYWHERE = {*dir(object), "__module__", "__weakref__", "__pyx_vtable__", "__dict__"}
PLAIN = (int, float, str, bytes, bool, tuple, type(None))


def names_of(module: Any) -> dict[str, Any]:
    """All of a module: of each name what it is, and what belongs to that."""
    return {name: what_is(module, getattr(module, name)) for name in sorted(dir(module))}


def what_is(module: Any, value: Any) -> Any:
    """What a value of the module is: a class with its own members, a function, another value."""
    if inspect.isclass(value):
        own = (name for name in sorted(vars(value)) if name not in EVERYWHERE)
        return {"class": {name: member_of(module, value, name) for name in own}}
    if inspect.isroutine(value):
        return {"function": parameters_of(module, value)}
    return {"value": type(value).__name__}


def member_of(module: Any, owner: type, name: str) -> Any:
    """What a member of a class is, and its parameters; None if there is none."""
    if not hasattr(owner, name):
        return None
    kind = KINDS.get(type(inspect.getattr_static(owner, name)).__name__, "method")
    value = getattr(owner, name)
    if kind == "property":
        return kind
    if name.startswith("__"):
        return "special"
    return [kind, parameters_of(module, value)] if callable(value) else type(value).__name__


def parameters_of(module: Any, function: Any) -> list[str] | None:
    """Its parameters with their defaults; None if it does not tell them."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    found = []
    for parameter in signature.parameters.values():
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        text = stars.get(parameter.kind, "") + parameter.name
        if parameter.default is not parameter.empty:
            text += f"={_shown(module, parameter.default)}"
        found.append(text)
    return found


def _shown(module: Any, value: Any) -> str:
    if isinstance(value, PLAIN):
        return repr(value)
    for name in ("INFO_NULL", "SUM", "BOTTOM", "IN_PLACE", "ERRHANDLER_NULL"):
        if getattr(module, name) is value or (type(getattr(module, name)) is type(value)
                                              and getattr(module, name) == value):  # fmt: skip
            return name
    return "..." if value is ... else type(value).__name__


if __name__ == "__main__":
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    lines = (f"{json.dumps(name)}: {json.dumps(told)}" for name, told in names_of(MPI).items())
    print("{\n", ",\n".join(lines), "\n}", sep="")
