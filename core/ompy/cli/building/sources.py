"""What the source of a module says of itself to the compiler: see `ompy/compiled.py`."""

from __future__ import annotations

import ast
import functools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ompy.cli.building.processes import RefusalError

WORDS: Final = ("cclass", "ccall", "cfunc")
RECYCLED: Final = "recycled"
CHECKING: Final = "TYPE_CHECKING"  # imports under it are for the type checker
DECLARING: Final = "DECLARING"  # under it for the type checker and the compiler
ALWAYS: Final = ""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class SourceError(RefusalError):
    """A source says what cannot be compiled; the text says where."""


@dataclass(frozen=True)
class Imported:
    """A name that a module imports.

    Attributes:
        module: from which.
        name: under which it is known there; empty: it is the module itself.
        under: the condition, or `ALWAYS`.
        again: it is there for others to import from here.
    """

    module: str
    name: str
    under: str
    again: bool


class Source:
    """A module's source, read.

    Attributes:
        name: of the module.
        imports: by the name it has here; those at the top of the module.
        classes: the marked ones.
        functions: the marked ones outside classes.
        constants: what names are given, once, at the top of the module.
        told: the types of those of them that are annotated, as in `Final[int]`.
    """

    def __init__(self, name: str, text: str) -> None:
        """Read it.

        Raises:
            SyntaxError: it is no Python.
        """
        self.name = name
        self.imports: dict[str, Imported] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.constants: dict[str, ast.expr] = {}
        self.told: dict[str, ast.expr] = {}
        self._changing: set[str] = set()
        self.tree = ast.parse(text)
        for node in self.tree.body:
            self._read(node, ALWAYS)
        for inner in ast.walk(self.tree):
            if isinstance(inner, ast.Global):
                self._changing.update(inner.names)
        for changed in self._changing:
            self.constants.pop(changed, None)
            self.told.pop(changed, None)

    def place(self, node: ast.expr | ast.stmt) -> str:
        """Where something is, for people."""
        return f"{self.name}, line {node.lineno}"

    def _read(self, node: ast.stmt, under: str) -> None:
        match node:
            case ast.If(test=ast.Name(id=condition)) if condition in (CHECKING, DECLARING):
                for each in node.body:
                    self._read(each, condition)
            case ast.ImportFrom(module=str(module), names=names):
                for one in names:
                    again = one.asname == one.name
                    self.imports[one.asname or one.name] = Imported(module, one.name, under, again)
            case ast.ClassDef() if mark(node) == "cclass":
                self.classes[node.name] = node
            case ast.FunctionDef() if mark(node):
                self.functions[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._constant(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._constant(name, value)
                match node.annotation:
                    case ast.Subscript(value=ast.Name(id="Final"), slice=told):
                        self.told[name] = told

    def _constant(self, name: str, value: ast.expr) -> None:
        if name in self.constants:
            self._changing.add(name)
        self.constants[name] = value


def mark(node: ast.ClassDef | Function) -> str:
    """The word that marks a class or function, or nothing."""
    found = (one.id for one in node.decorator_list if isinstance(one, ast.Name))
    return next((word for word in found if word in WORDS), "")


def recycling(node: ast.ClassDef) -> ast.expr | None:
    """The word that has memory of a class kept, or None."""
    found = (one for one in node.decorator_list if isinstance(one, ast.Name))
    return next((one for one in found if one.id == RECYCLED), None)


def attributes(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """The annotations in a class's body that declare what its instances have."""
    return [each for each in node.body if isinstance(each, ast.AnnAssign) and each.value is None]


def methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """The marked ones."""
    return [each for each in node.body if isinstance(each, ast.FunctionDef) and mark(each)]


def plain_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Those without a mark, outside and inside of classes."""
    for node in tree.body:
        for one in node.body if isinstance(node, ast.ClassDef) else (node,):
            if isinstance(one, ast.FunctionDef) and not mark(one):
                yield one


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """All of a function, without what is inside of functions and classes in it."""
    left: deque[ast.AST] = deque([function])
    while left:
        node = left.popleft()
        yield node
        if node is function or not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            left += ast.iter_child_nodes(node)


def first_line(function: Function) -> int:
    """The line with which a function begins: that of its first decorator, or its own."""
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


class Tree:
    """The sources below a folder, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @functools.cache  # noqa: B019 - as long as the tree
    def source(self, name: str) -> Source | None:
        """A module's source; none for a module that is not below the folder.

        Raises:
            SourceError: it is no Python.
        """
        path = self._folder.joinpath(*name.split("."))
        found = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if not found.exists():
            return None
        try:
            return Source(name, found.read_text())
        except SyntaxError as problem:
            raise SourceError(f"{name}, line {problem.lineno}: {problem.msg}") from None

    @functools.cache  # noqa: B019 - as long as the tree
    def written(self, name: str) -> str:
        """A module's declarations written by hand; empty if there are none."""
        path = self._folder.joinpath(*name.split(".")).with_suffix(".pxd")
        return path.read_text() if path.exists() else ""
