"""What the drop-in package is measured by: mpi4py's names outside `MPI`, and what MPI lacks here.

python -m tests.support.drop_in_facts SDIST > tests/golden/mpi4py_beside_names.txt
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.stub_facts import facts

ROOT = Path(__file__).parents[2]
MODULES = (
    "__init__",
    "bench",
    "run",
    "futures.__init__",
    "futures.aplus",
    "futures.pool",
    "futures.server",
    "futures.util",
    "util.dtlib",
    "util.pkl5",
    "util.pool",
    "util.sync",
)


def of_stubs(sources: Path) -> Iterator[str]:
    """Lines of a module, a public name in it, and its parameters if it is called."""
    for module in MODULES:
        path = sources / "src" / "mpi4py" / f"{module.replace('.', '/')}.pyi"
        named = f"mpi4py.{module}".removesuffix(".__init__")
        for name, fact in facts(path.read_text()).items():
            parts = name.split(".")
            if any(part.startswith("_") and part != "__init__" for part in parts):
                continue
            if len(parts) > 1 and fact == "value":
                continue  # of an object, perhaps, which there is none of here
            yield f"{named} {name} {fact if '(' in fact and 'class(' not in fact else 'value'}"


def parameters_of(function: Callable[..., Any]) -> str:
    """The parameters of a function, as `stub_facts` has them."""
    kinds = inspect.Parameter
    found = []
    for each in inspect.signature(function).parameters.values():
        mark = "=" if each.default is not kinds.empty else ""
        names = {
            kinds.POSITIONAL_ONLY: f"/{mark}",
            kinds.VAR_POSITIONAL: "*",
            kinds.KEYWORD_ONLY: f"*{each.name}{mark}",
            kinds.VAR_KEYWORD: "**",
        }
        found.append(names.get(each.kind, f"{each.name}{mark}"))
    return f"({', '.join(found)})"


def of_module(module: str, name: str, fact: str) -> str:
    """What a name of ours is, to be compared with such a line."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = (
            inspect.getattr_static(found, part) if isinstance(found, type) else getattr(found, part)
        )
    if fact == "value":
        return fact
    if isinstance(found, (classmethod, staticmethod)):
        kind = "class" if isinstance(found, classmethod) else "static"
        return f"{kind} {parameters_of(found.__func__)}"
    return parameters_of(found)


def unavailable() -> dict[str, list[str]]:
    """Calls of MPI that exist to raise NotImplementedError, by the feature they name."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "core" / "ompy" / "mpi").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Raise(exc=ast.Call(func=ast.Name(id="not_available"), args=[call, what])):
                    found.setdefault(ast.literal_eval(what), []).append(ast.literal_eval(call))
    return {what: sorted(calls) for what, calls in sorted(found.items())}


def table() -> str:
    """The rows of `docs/mpi4py.md`."""
    rows = (
        f"| {what} | {', '.join(f'`{call}`' for call in calls)} |"
        for what, calls in unavailable().items()
    )
    return "\n".join(rows)


if __name__ == "__main__":
    print("\n".join(of_stubs(Path(sys.argv[1]))))
