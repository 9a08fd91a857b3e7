"""What a program does with what it receives, by its own source."""

from __future__ import annotations

import ast
from functools import cache
from typing import Final

from ompy.check.analysis.key_uses import KeyFlow
from ompy.check.analysis.program_tree import ProgramTree
from ompy.check.analysis.received_uses import Flow
from ompy.check.analysis.source_tree import argument_of, called_name
from ompy.check.analysis.use_words import Use
from ompy.check.logs import Place
from ompy.check.program_text import is_cell, parsed_file, related_files

# functions that may read any name
_ALL_NAMES: Final = frozenset({"locals", "globals", "vars", "eval", "exec"})

# where the Status stands among the arguments of calls
_STATUS_AT: Final = {
    **dict.fromkeys(("Recv", "recv"), 3),
    **dict.fromkeys(("Mprobe", "mprobe", "Improbe", "improbe", "Probe", "probe"), 2),
    **dict.fromkeys(("Iprobe", "iprobe"), 2),
}
# of a Status: nothing of this tells who sent
_OF_LENGTHS: Final = frozenset({
    "Get_count", "count", "Get_elements", "Get_error", "error", "Is_cancelled", "cancelled",
})  # fmt: skip


@cache
def use_at(place: Place, files: tuple[str, ...] = ()) -> Use:
    """How a line treats what it receives.

    Args:
        place: the line.
        files: of the program: functions of others may get what this one's return.
    """
    tree = parsed_file(place.file)
    if tree is None:
        return Use.ANYTHING
    path = path_to_call(tree, place.line)
    if not path:
        return Use.ANYTHING
    call, flow = path[-1], Flow(tree, _others(place.file, files))
    assert isinstance(call, ast.Call), "the path leads to a call"
    name = called_name(call)
    if name in {"irecv", "Irecv_init", "Recv_init"} or "wait" in name:
        return flow.use_of_request(call) if name == "irecv" else Use.ANYTHING
    if name in {"Recv", "Irecv"}:
        buffer = _buffer_of(call)
        known = isinstance(buffer, (ast.Name, ast.Subscript))
        return flow.use_of_rows(call, buffer) if buffer is not None and known else Use.ANYTHING
    return flow.use_of_item(call)


@cache
def keys_at(place: Place, files: tuple[str, ...] = ()) -> frozenset[int | str]:
    """Parts of what a line receives that say where the rest is put: the last one there stays.

    Args:
        place: the line.
        files: as of `use_at`.

    Returns:
        Their indices, keys or attributes.
    """
    tree = parsed_file(place.file)
    path = [] if tree is None else path_to_call(tree, place.line)
    call = path[-1] if path else None
    if tree is None or not isinstance(call, ast.Call) or called_name(call) != "recv":
        return frozenset()
    flow = KeyFlow(tree, _others(place.file, files))
    flow.use_of_item(call)
    return flow.keys()


def _others(file: str, files: tuple[str, ...]) -> list[ast.Module]:
    """The modules that have to do with a file."""
    found = map(parsed_file, related_files(file, files))
    return [each for each in found if each is not None]


@cache
def is_left(place: Place, element: int) -> bool:
    """Whether nobody looks at an element of what a line receives: it has a name that is not read.

    A later cell may read the names of a cell, unless they are those of a function.

    Args:
        place: the line.
        element: its index.
    """
    tree = parsed_file(place.file)
    path = [] if tree is None else path_to_call(tree, place.line)
    assignment = path[-2] if len(path) > 1 else None
    if tree is None or not isinstance(assignment, ast.Assign) or len(assignment.targets) > 1:
        return False
    target = assignment.targets[0]
    if not isinstance(target, (ast.Tuple, ast.List)) or element >= len(target.elts):
        return False
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    if is_cell(place.file) and not any(isinstance(each, functions) for each in path):
        return False
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    if len(names) < len(target.elts):
        return False
    read = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            read.add(each.id)
        elif isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            read.add(each.target.id)
    return not read & {names[element], *_ALL_NAMES}


@cache
def is_status_left(*places: Place) -> bool:
    """Whether calls give a Status, and nobody asks it who sent.

    It has to be a variable, so that all places that look at it are known.

    Args:
        places: lines of calls that receive, or probe, one message.
    """
    asked = []
    for place in set(places):
        tree = parsed_file(place.file)
        if tree is None or is_cell(place.file):
            return False
        program = ProgramTree(tree)
        for call in _calls_on(tree, place.line):
            status = _status_of(call)
            if isinstance(status, ast.Name):
                asked.append(_asks(program, status))
            elif status is not None:
                return False
    return bool(asked) and not any(asked)


def _calls_on(tree: ast.AST, line: int) -> list[ast.Call]:
    return [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.Call) and each.lineno <= line <= (each.end_lineno or 0)
    ]


def _status_of(call: ast.Call) -> ast.expr | None:
    """What a call gives as a Status."""
    place = _STATUS_AT.get(called_name(call), len(call.args))
    return argument_of(call, place, "status")


def _asks(program: ProgramTree, status: ast.Name) -> bool:
    """Whether anybody looks at a status, but for how long a message is."""
    scope = program.scope_of_name(status, status.id)
    for each in ast.walk(scope):
        if not isinstance(each, ast.Name) or each.id != status.id:
            continue
        node = program.parents[each]
        told = isinstance(each.ctx, ast.Store) or program.scope_of_name(each, each.id) is not scope
        if told or (isinstance(node, ast.Attribute) and node.attr in _OF_LENGTHS):
            continue
        call = program.parents[node] if isinstance(node, ast.keyword) else node
        if not isinstance(call, ast.Call) or _status_of(call) is not each:
            return True
    return False


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


def received_name(path: list[ast.AST]) -> str:
    """The variable that has what was received: the target of the assignment, or the buffer."""
    if not path:
        return ""
    call = path[-1]
    for node in reversed(path):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            return node.targets[0].id
    assert isinstance(call, ast.Call), "the path leads to a call"
    return buffer_name(call)


def buffer_name(call: ast.Call) -> str:
    """The variable that a call receives into; empty where there is none."""
    first = _buffer_of(call)
    return first.id if isinstance(first, ast.Name) else ""


def _buffer_of(call: ast.Call) -> ast.expr | None:
    first = argument_of(call, 0, "buf")
    return first.elts[0] if isinstance(first, (ast.List, ast.Tuple)) and first.elts else first


def scope_of(path: list[ast.AST]) -> ast.AST:
    """The function that a call is in, or the module."""
    return next((n for n in reversed(path) if isinstance(n, ast.FunctionDef)), path[0])
