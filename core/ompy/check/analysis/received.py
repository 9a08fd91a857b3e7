"""What a program does with what it receives, by its own source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Final

from ompy.check.logs import Place
from ompy.check.program_text import parsed_file

# operations whose result does not depend on the order
_ADDING: Final = (ast.Add, ast.Mult)
_COMMUTING: Final = (ast.BitOr, ast.BitAnd, ast.BitXor)
_GATHERING: Final = frozenset({"sum", "max", "min", "sorted", "set", "add", "maximum", "minimum"})


class Use(Enum):
    """What a line does with what it receives."""

    ADDED = "added or multiplied: of numbers in any order the same"
    ORDER_FREE = "in any order the same: a largest, a set"
    ANYTHING = "nothing is known"


@cache
def use_at(place: Place) -> Use:
    """How a line treats what it receives."""
    tree = parsed_file(place.file)
    if tree is None:
        return Use.ANYTHING
    path = path_to_call(tree, place.line)
    for node in reversed(path):
        if isinstance(node, ast.AugAssign):
            return _use_of(node.op)
        if isinstance(node, ast.Call) and called_name(node) in _GATHERING:
            return Use.ORDER_FREE
    name = received_name(path)
    uses = list(_uses(scope_of(path), name, [])) if name else []
    if not uses or Use.ANYTHING in uses:
        return Use.ANYTHING
    return Use.ADDED if Use.ADDED in uses else Use.ORDER_FREE


def _use_of(operation: ast.operator) -> Use:
    if isinstance(operation, _ADDING):
        return Use.ADDED
    return Use.ORDER_FREE if isinstance(operation, _COMMUTING) else Use.ANYTHING


def path_to_call(tree: ast.AST, line: int) -> list[ast.AST]:
    """The nodes from the module to the innermost receive on a line."""
    best: list[ast.AST] = []

    def walk(node: ast.AST, path: list[ast.AST]) -> None:
        nonlocal best
        path = [*path, node]
        called = called_name(node).lower() if isinstance(node, ast.Call) else ""
        on_line = getattr(node, "lineno", 0) <= line <= getattr(node, "end_lineno", 0)
        if on_line and ("recv" in called or "wait" in called):
            best = path
        for child in ast.iter_child_nodes(node):
            walk(child, path)

    walk(tree, [])
    return best


def called_name(node: ast.Call) -> str:
    """The last name of what is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def received_name(path: list[ast.AST]) -> str:
    """The variable that has what was received: the target of the assignment, or the buffer."""
    if not path:
        return ""
    call = path[-1]
    for node in reversed(path):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            return node.targets[0].id
    assert isinstance(call, ast.Call), "the path leads to a call"
    first = call.args[0] if call.args else None
    if isinstance(first, (ast.List, ast.Tuple)) and first.elts:
        first = first.elts[0]
    return first.id if isinstance(first, ast.Name) else ""


def scope_of(path: list[ast.AST]) -> ast.AST:
    """The function that a call is in, or the module."""
    return next((n for n in reversed(path) if isinstance(n, ast.FunctionDef)), path[0])


def _uses(node: ast.AST, name: str, path: list[ast.AST]) -> Iterator[Use]:
    """What is done with a variable's value, wherever that is."""
    path = [*path, node]
    if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
        calls = [n for n in path if isinstance(n, ast.Call)]
        if any("recv" in called_name(call).lower() for call in calls):
            return
        added = next((n for n in path if isinstance(n, ast.AugAssign)), None)
        if added is not None:
            yield _use_of(added.op)
            return
        gathers = any(called_name(call) in _GATHERING for call in calls)
        yield Use.ORDER_FREE if gathers else Use.ANYTHING
        return
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, name, path)
