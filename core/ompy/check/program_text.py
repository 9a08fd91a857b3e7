"""The program's own source: parsed, and what expressions in it are."""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Callable, Iterable
from functools import lru_cache, update_wrapper
from types import CodeType
from typing import Final, TypeVar

# calls that end when another rank, or a message, has come; in small letters
WAITING: Final = frozenset({
    "recv", "mrecv", "wait", "waitall", "waitany", "waitsome", "probe", "mprobe", "sendrecv",
    "barrier", "bcast", "reduce", "allreduce", "gather", "allgather", "scatter", "alltoall",
    "fence", "test", "testall", "testany", "testsome", "iprobe", "improbe",
})  # fmt: skip
T = TypeVar("T")
CODES: Final = 4096  # arbitrary: more than a program has; one that makes new ones is no leak
PARSED: Final = 64  # files kept; arbitrary: a program has a few
# of an index that can be known before its line runs, without anything happening by it
_PLAIN: Final = (
    ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Slice, ast.Tuple, ast.Load, ast.operator,
    ast.unaryop,
)  # fmt: skip


def parsed_file(file: str) -> ast.Module | None:
    """A file; None where its source is not there, or is none. Not to be changed."""
    return _parsed_text("".join(linecache.getlines(file)))


def related_files(file: str, files: Iterable[str]) -> list[str]:
    """Those of some files that import one, or what imports it, and those that it imports itself."""
    imports = {each: names_imported(each) for each in {file, *files}}
    above = {file}
    while more := {
        each
        for each in files
        if each not in above and any(module_name(one) in imports[each] for one in above)
    }:
        above |= more
    below = {each for each in files if module_name(each) in imports[file]}
    return sorted((above | below) - {file})


def module_name(file: str) -> str:
    """The last part of the name by which a file is imported."""
    folder, name = os.path.split(file)
    stem = name.removesuffix(".py")
    return os.path.basename(folder) if stem == "__init__" else stem


@lru_cache(PARSED)
def names_imported(file: str) -> frozenset[str]:
    """The parts of all names that a file imports."""
    tree, found = parsed_file(file), set[str]()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [each.name for each in node.names]
            names.append(getattr(node, "module", None) or "")
            found.update(part for name in names for part in name.split("."))
    return frozenset(found)


def is_cell(file: str) -> bool:
    """Whether a file is a cell of a notebook: its lines were kept, and are on no disk."""
    kept = linecache.cache.get(file, ())
    return len(kept) > 1 and kept[1] is None


@lru_cache(PARSED)
def _parsed_text(text: str) -> ast.Module | None:
    try:
        return ast.parse(text) if text else None
    except (SyntaxError, ValueError):
        return None


def body_of(code: CodeType) -> list[ast.stmt]:
    """The statements of a function, or of a module; none where its source is not there."""
    tree = parsed_file(code.co_filename)
    if tree is None:
        return []
    if code.co_name == "<module>":
        return tree.body
    if code.co_name == "<lambda>":
        return _body_of_lambda(tree, code)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = {node.lineno, *(each.lineno for each in node.decorator_list)}
            if node.name == code.co_name and code.co_firstlineno in lines:
                return node.body
    return []


def _body_of_lambda(tree: ast.Module, code: CodeType) -> list[ast.stmt]:
    """The one that begins on the code's line; none where that has several."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
    ]
    if len(found) != 1:
        return []
    return [ast.copy_location(ast.Expr(found[0].body), found[0].body)]


@lru_cache(PARSED)
def names_in_functions(file: str) -> frozenset[str]:
    """Names that functions of a file use, and do not store: those of their own module, perhaps."""
    tree, found = parsed_file(file), set[str]()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
            stored = {each.id for each in names if not isinstance(each.ctx, ast.Load)}
            found |= {each.id for each in names} - stored
    return frozenset(found)


@lru_cache(PARSED)
def may_wait_in_loop(file: str) -> bool:
    """Whether a file has a loop that may last until others have changed memory.

    No call in it waits, and nothing in it changes what ends it.
    """
    tree = parsed_file(file)
    loops = (each for each in ast.walk(tree) if isinstance(each, ast.While)) if tree else ()
    return any(map(_may_wait, loops))


def _may_wait(loop: ast.While) -> bool:
    inside = [each for statement in loop.body for each in ast.walk(statement)]
    calls = [each for each in (*inside, *ast.walk(loop.test)) if isinstance(each, ast.Call)]
    if any(dotted_name(each.func).rpartition(".")[2].lower() in WAITING for each in calls):
        return False
    changed = {
        each.id
        for each in inside
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }
    asked = {each.id for each in ast.walk(loop.test) if isinstance(each, ast.Name)}
    if asked:
        return not asked & changed
    return any(isinstance(each, (ast.Break, ast.Return)) for each in inside)


def is_key_read(key: str, files: Iterable[str]) -> bool:
    """Whether some files have a text anywhere but as a key of a dict that they write down."""
    for file in files:
        tree = parsed_file(file)
        nodes = [] if tree is None else list(ast.walk(tree))
        written = {id(each) for node in nodes if isinstance(node, ast.Dict) for each in node.keys}
        for node in nodes:
            if isinstance(node, ast.Constant) and node.value == key and id(node) not in written:
                return True
    return False


def cached_by_code(function: Callable[[CodeType], T]) -> Callable[[CodeType], T]:
    """Keep what a function finds in a code, by its id.

    The hash of a code is that of all its constants, so `cache` would take longer than most calls.
    """
    known: dict[int, tuple[CodeType, T]] = {}

    def cached(code: CodeType) -> T:
        found = known.get(id(code))
        if found is None:
            if len(known) >= CODES:
                known.clear()
            found = known[id(code)] = (code, function(code))
        return found[1]

    return update_wrapper(cached, function)


def expression_name(node: ast.AST | None) -> str:
    """A name, or an attribute of one, as text; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def dotted_name(node: ast.AST | None) -> str:
    """The same, also of an attribute of an attribute and so on."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return ".".join([node.id, *parts]) if isinstance(node, ast.Name) else ""


def has_slice(node: ast.Subscript) -> bool:
    """Whether a subscript gives a part of what it is of, and not an element."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(part, ast.Slice) for part in parts)


def is_plain(index: ast.expr) -> bool:
    """Whether an index can be known before its line runs, without anything happening by it."""
    return all(isinstance(node, _PLAIN) for node in ast.walk(index))


def attributes_in(index: ast.expr) -> list[str] | None:
    """The attributes in an index that is plain but for these, as text; None if it is not."""
    left, found = [index], []
    while left:
        node = left.pop()
        if isinstance(node, ast.Attribute):
            found.append(dotted_name(node))
        elif isinstance(node, _PLAIN):
            left += ast.iter_child_nodes(node)  # type: ignore[arg-type]
        else:
            return None
    return found if all(found) else None
