"""What statements of a program are to each other, whatever flows through them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)


def called_name(node: ast.Call) -> str:
    """The last name of what is called."""
    return last_name(node.func)


def last_name(node: ast.AST) -> str:
    """The last part of a name like `a.b`; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def argument_of(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """What a call gives for a parameter: by its place or its name; None for nothing."""
    given = [each.value for each in call.keywords if each.arg == name]
    if given or place >= len(call.args):
        return given[0] if given else None
    return call.args[place]


def captured_names(pattern: ast.pattern) -> list[str]:
    """The variables that a pattern of `case` gives a value."""
    found = []
    for each in ast.walk(pattern):
        name = each.rest if isinstance(each, ast.MatchMapping) else getattr(each, "name", None)
        if name:
            found.append(name)
    return found


def is_refilled(
    load: ast.AST, name: str, receive: ast.AST, parents: Mapping[ast.AST, ast.AST]
) -> bool:
    """Whether another receive into a buffer always comes between one and a place that reads it.

    Args:
        load: the place.
        name: of the buffer.
        receive: the one.
        parents: of all nodes.
    """
    node = load
    while node in parents and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for before in _statements_before(node, parents[node]):
            if _contains(before, receive):
                return False
            if isinstance(before, (ast.Expr, ast.Assign)) and _fills(before, name):
                return True
        node = parents[node]
        if isinstance(node, LOOPS) and _contains(node, receive):
            return False  # it may come by the loop's end
    return False


def is_kept(assignment: ast.Assign, name: str, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a loop keeps what it gives a variable, for later rounds or for what follows it.

    So it does if the variable is read anywhere but behind the assignment, in the same round, and
    nothing else in the loop gives it a value.
    """
    loop = above(assignment, LOOPS, parents)
    if loop is None:
        return False
    named = _names_in(above(loop, SCOPES, parents) or loop, name)
    inside = set(ast.walk(loop)) - set(ast.walk(assignment))
    if any(not isinstance(each.ctx, ast.Load) and each in inside for each in named):
        return False
    points: list[ast.AST] = [assignment]  # by whose end it has been done
    while isinstance(parents.get(points[-1]), (ast.With, ast.AsyncWith, ast.Try)):
        points.append(parents[points[-1]])
    own = set(ast.walk(assignment))
    return any(
        isinstance(each.ctx, ast.Load) and each not in own and not _is_behind(each, points, parents)
        for each in named
    )


def above(
    node: ast.AST, kinds: tuple[type[ast.AST], ...], parents: Mapping[ast.AST, ast.AST]
) -> ast.AST | None:
    """The innermost node of some kinds around one, in the same function."""
    while node in parents:
        node = parents[node]
        if isinstance(node, kinds):
            return node
        if isinstance(node, SCOPES):
            return None
    return None


def _names_in(node: ast.AST, name: str) -> list[ast.Name]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]


def _is_behind(node: ast.AST, points: list[ast.AST], parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether one of some statements stands before a node, in a block that it is in."""
    while node in parents and not isinstance(node, SCOPES):
        if any(before in points for before in _statements_before(node, parents[node])):
            return True
        node = parents[node]
    return False


def _statements_before(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """Those of the same block that run before a statement, the last one first."""
    for _, block in ast.iter_fields(parent):
        if isinstance(block, list) and isinstance(node, ast.stmt) and node in block:
            yield from reversed(block[: block.index(node)])


def _contains(node: ast.AST, other: ast.AST) -> bool:
    return any(each is other for each in ast.walk(node))


def _fills(statement: ast.AST, name: str) -> bool:
    """Whether a statement receives into a buffer and is over with that, without a request."""
    return any(
        isinstance(each, ast.Call)
        and called_name(each) == "Recv"
        and bool(each.args)
        and name in {n.id for n in ast.walk(each.args[0]) if isinstance(n, ast.Name)}
        for each in ast.walk(statement)
    )


def changed_in(statements: Sequence[ast.AST]) -> set[str]:
    """What statements give new values, as it is written: `stock`, `self.stock`."""
    found = set()
    for node in (each for statement in statements for each in ast.walk(statement)):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        found |= {ast.unparse(one) for each in targets for one in getattr(each, "elts", [each])}
    return found


def read_in(expression: ast.AST) -> set[str]:
    """Variables and attributes that an expression reads, as they are written."""
    return {
        ast.unparse(each)
        for each in ast.walk(expression)
        if isinstance(each, (ast.Name, ast.Attribute, ast.Subscript))
    }


def values_of(tree: ast.AST, name: str) -> list[ast.expr]:
    """What is assigned to a variable or an attribute, anywhere."""
    found = []
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        value = getattr(node, "value", None)
        if isinstance(value, ast.expr) and name in map(ast.unparse, targets):
            found.append(value)
    return found


def is_of_probe(value: ast.expr, scope: ast.AST) -> bool:
    """Whether an expression of a function is who sent what it probed, also by a variable."""
    if isinstance(value, ast.Name):
        plain = [each for each in values_of(scope, value.id) if not isinstance(each, ast.Name)]
        return bool(plain) and all(is_of_probe(each, scope) for each in plain)
    if isinstance(value, ast.Call) and called_name(value) == "Get_source":
        return is_of_probe(value.func, scope)
    if not isinstance(value, ast.Attribute) or value.attr not in {"source", "Get_source"}:
        return False
    status = ast.unparse(value.value)
    given = [
        argument_of(each, 2, "status")
        for each in ast.walk(scope)
        if isinstance(each, ast.Call) and called_name(each).lower() in {"probe", "iprobe"}
    ]
    return any(each is not None and ast.unparse(each) == status for each in given)


def is_text(value: ast.expr) -> bool:
    """Whether a value is a text, or bytes."""
    if isinstance(value, ast.Call):
        return called_name(value) in {"str", "bytes", "bytearray"}
    return isinstance(value, ast.JoinedStr) or (
        isinstance(value, ast.Constant) and isinstance(value.value, (str, bytes))
    )


def is_list(value: ast.expr) -> bool:
    """Whether a value is a list."""
    if isinstance(value, ast.Call):
        return called_name(value) in {"list", "deque"}
    return isinstance(value, (ast.List, ast.ListComp))


def other_axis(call: ast.Call) -> bool:
    """Whether a call works along another axis than the first one."""
    axes = [each.value for each in call.keywords if each.arg == "axis"]
    return any(not isinstance(axis, ast.Constant) or axis.value not in {0, None} for axis in axes)
