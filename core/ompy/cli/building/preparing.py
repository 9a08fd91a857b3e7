"""The sources as they are compiled: with their declarations, without the words those are made from.

Every line stays where it was, so that tracebacks are right.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ompy.cli.building.constants import Constants
from ompy.cli.building.declaring import Declarations
from ompy.cli.building.modules import dotted, hot_modules
from ompy.cli.building.sources import (
    CHECKING,
    Source,
    SourceError,
    Tree,
    attributes,
    mark,
    methods,
    recycling,
)

RECYCLER: Final = "ompy.recycling"
FUTURE: Final = "from __future__ import annotations\n"
NOTHING: Final[Mapping[int, str]] = MappingProxyType({})


def write_sources(tree: Path, target: Path) -> None:
    """Write all that Cython reads.

    Args:
        tree: the folder with the packages; nothing is written there.
        target: another one.

    Raises:
        SourceError: a module says what cannot be compiled.
    """
    read = Tree(tree)
    constants = Constants(read)
    for path in tree.rglob("*.pxd"):
        _copy(path, tree, target)
        if path.with_suffix(".py").exists():
            _copy(path.with_suffix(".py"), tree, target)
    for path in tree.rglob("__init__.py"):
        _copy(path, tree, target)
    for path in hot_modules(tree):
        if path.with_suffix(".pxd").exists():
            continue
        name = dotted(tree, path)
        declarations = Declarations(read, constants, name)
        made = _copy(path, tree, target)
        numbers, hints = list(declarations.numbers()), declarations.hints()
        made.write_text(compilable(name, path.read_text(), numbers, hints))
        made.with_suffix(".pxd").write_text(declarations.text())


def _copy(path: Path, tree: Path, target: Path) -> Path:
    made = target / path.relative_to(tree)
    made.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, made)
    return made


def compilable(
    name: str, text: str, numbers: Sequence[str] = (), hints: Mapping[int, str] = NOTHING
) -> str:
    """A module's source without marks and annotated attributes.

    Args:
        name: of the module.
        text: its source.
        numbers: its constants that are numbers in C, and so would be unknown to all others.
        hints: of functions without a mark, as `Declarations.hints` says.

    Returns:
        As many lines, one that makes the numbers known, one that has memory of classes kept.

    Raises:
        SyntaxError: it is no Python.
        SourceError: a line is missing for a hint.
    """
    source = Source(name, text)
    lines = text.splitlines(keepends=True)
    _hint(source, lines, hints)
    for function in source.functions.values():
        _unmark(lines, function)
    for each in source.classes.values():
        _unmark(lines, each)
        for method in methods(each):
            _unmark(lines, method)
        _without_attributes(lines, each)
    shown = ", ".join(f"{number}={number}" for number in numbers)
    kept = ", ".join(_recycled(lines, source.tree))
    made = "".join(lines)
    if shown:
        made += f"globals().update({shown})\n"
    if kept:
        made += f"from {RECYCLER} import recycle; recycle({kept})\n"
    return made


def _hint(source: Source, lines: list[str], hints: Mapping[int, str]) -> None:
    """Write hints in the empty lines before functions."""
    if not hints:
        return
    at = lines.index(FUTURE)
    lines[at] = f"{FUTURE.rstrip()}; import cython\n"
    for number, told in hints.items():
        before, line = lines[number - 2].strip(), lines[number - 1]
        if before and not before.startswith("#"):
            raise SourceError(f"{source.name}, line {number}: there has to be an empty line before")
        indent = line[: len(line) - len(line.lstrip())]
        lines[number - 2] = f"{indent}@cython.locals({told})\n"


def _unmark(lines: list[str], node: ast.ClassDef | ast.FunctionDef) -> None:
    for one in node.decorator_list:
        if isinstance(one, ast.Name) and one.id == mark(node):
            _blank(lines, one)


def _recycled(lines: list[str], tree: ast.Module) -> list[str]:
    """The classes of which memory is kept; their marks go."""
    found = []
    for each in tree.body:
        if isinstance(each, ast.ClassDef) and (word := recycling(each)) is not None:
            _blank(lines, word)
            found.append(each.name)
    return found


def _without_attributes(lines: list[str], node: ast.ClassDef) -> None:
    """What a class with nothing left in it has is `pass`."""
    declared = attributes(node)
    names = [one.target.id for one in declared if isinstance(one.target, ast.Name)]
    left = len(node.body)
    for each in node.body:
        match each:
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                more = [ast.literal_eval(one) for one in getattr(value, "elts", [])[1:]]
                slots = repr((*names, *more))
                _blank(lines, each)
                indent = " " * each.col_offset
                lines[each.lineno - 1] = f"{indent}__slots__ = {slots}\n"
            case ast.If(test=ast.Name(id=condition)) if condition == CHECKING:
                _blank(lines, each)
                left -= 1
            case ast.AnnAssign(value=None):
                _blank(lines, each)
                left -= 1
    if not left:
        last = node.body[-1]
        lines[last.lineno - 1] = f"{' ' * last.col_offset}pass\n"


def _blank(lines: list[str], node: ast.expr | ast.stmt) -> None:
    for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
        lines[number - 1] = "\n"
