"""What a stub says that programs may rely on, without types: names, kinds, parameters.

    python -m tests.support.stub_facts .../mpi4py/MPI.pyi > tests/golden/mpi4py_names.txt

A line is a name of the module, or `Class.name`. A function has its parameters behind it: `=` if one
may be left out, `/` in the place of a name that is by position only, `*` before one that is by name
only. A class has its bases.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path


def parameters(arguments: ast.arguments) -> str:
    """The parameters of a function, by their names and kinds."""
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = len(positional) - len(arguments.defaults)
    found = [
        ("/" if place < len(arguments.posonlyargs) else argument.arg)
        + ("=" if place >= needed else "")
        for place, argument in enumerate(positional)
    ]
    if arguments.vararg:
        found.append("*")
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found += [f"*{argument.arg}" + ("=" if default else "") for argument, default in pairs]
    if arguments.kwarg:
        found.append("**")
    return ", ".join(found)


def facts(stub: str) -> dict[str, str]:
    """Each name of a stub, `Class.name` for members, with what is to be said of it."""
    found: dict[str, str] = {}
    for name, fact in _facts(ast.parse(stub).body, ""):
        found.setdefault(name, fact)
    for name, fact in found.items():  # a name for another's function
        if fact.startswith("= "):
            owner = name.rpartition(".")[0]
            found[name] = found.get(f"{owner}.{fact[2:]}", "value")
    return found


def _facts(body: list[ast.stmt], owner: str) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield owner + node.name, _function(node)
        elif isinstance(node, ast.ClassDef):
            yield owner + node.name, f"class({', '.join(map(ast.unparse, node.bases))})"
            yield from _facts(node.body, f"{node.name}.")
        elif isinstance(node, ast.AnnAssign):
            yield owner + ast.unparse(node.target), "value"
        elif isinstance(node, ast.Assign):
            yield owner + ast.unparse(node.targets[0]), f"= {ast.unparse(node.value)}"
        elif isinstance(node, ast.If):
            yield from _facts(node.body, owner)


def _function(node: ast.FunctionDef) -> str:
    decorators = {ast.unparse(one) for one in node.decorator_list}
    if "property" in decorators:
        return "value"
    # the first parameter is not the caller's
    on_class = decorators & {"classmethod"} or node.name == "__new__"
    kind = "class " if on_class else "static " if "staticmethod" in decorators else ""
    return f"{kind}({parameters(node.args)})"


def inherited(found: Mapping[str, str], name: str) -> str | None:
    """What a stub says of a name, in the class or in what that is made of."""
    while name not in found:
        owner, _, member = name.rpartition(".")
        bases = found.get(owner, "")[len("class(") : -1].split(", ")
        if not owner or bases == [""]:
            return None
        name = f"{bases[0]}.{member}"
    return found[name]


if __name__ == "__main__":
    for fact_name, fact_text in sorted(facts(Path(sys.argv[1]).read_text()).items()):
        print(fact_name, fact_text)
