"""The whole numbers that modules give names, found without running any of them."""

from __future__ import annotations

import ast
import operator
import struct
from collections.abc import Callable
from typing import Final

from ompy.cli.building.sources import ALWAYS, Tree
from ompy.data.header_layout import HeaderLayout

OPERATIONS: Final[dict[type, Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
UNARY: Final[dict[type, Callable[[int], int]]] = {
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}
SIGNED: Final = range(-(1 << 63), 1 << 63)  # C, `long long`
UNSIGNED: Final = range(1 << 64)  # C, `unsigned long long`


def c_number(value: int) -> str:
    """The C type that holds a number; empty if none does."""
    if value in SIGNED:
        return "long long"
    return "unsigned long long" if value in UNSIGNED else ""


class Constants:
    """What the names of a tree's modules stand for, as far as they are whole numbers."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._known: dict[tuple[str, str], int | None] = {}

    def value(self, module: str, name: str) -> int | None:
        """The whole number that a name stands for in a module; none if it is no such constant."""
        key = (module, name)
        if key not in self._known:
            self._known[key] = None  # for one that is made of itself
            self._known[key] = self._looked_up(module, name)
        return self._known[key]

    def _looked_up(self, module: str, name: str) -> int | None:
        source = self._tree.source(module)
        if source is None:
            return None
        imported = source.imports.get(name)
        if imported is not None:
            plain = imported.under == ALWAYS and imported.name
            return self.value(imported.module, imported.name) if plain else None
        value = source.constants.get(name)
        return None if value is None else self._computed(module, value)

    def _computed(self, module: str, node: ast.expr) -> int | None:
        found: int | None = None
        match node:
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                found = number
            case ast.Name(id=name):
                found = self.value(module, name)
            case ast.UnaryOp(op=op, operand=inner) if type(op) in UNARY:
                operand = self._computed(module, inner)
                found = None if operand is None else UNARY[type(op)](operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
                one, other = self._computed(module, left), self._computed(module, right)
                if one is not None and other is not None:
                    found = OPERATIONS[type(op)](one, other)
            case ast.Attribute(value=ast.Name(id=name), attr="size"):
                found = self._size(module, name)
        return found

    def _size(self, module: str, name: str) -> int | None:
        """That of a `struct.Struct` or a `HeaderLayout` that is written out, or of its `struct`."""
        source = self._tree.source(module)
        if source is None:
            return None
        imported = source.imports.get(name)
        if imported is not None:
            return self._size(imported.module, imported.name)
        match source.constants.get(name):
            case ast.Call(
                func=ast.Name(id="Struct") | ast.Attribute(attr="Struct"),
                args=[ast.Constant(value=str(layout))],
            ):
                return struct.calcsize(layout)
            case ast.Call(
                func=ast.Name(id="HeaderLayout"),
                args=[ast.Constant(), ast.Constant(value=str(fields))],
            ):
                return HeaderLayout(name, fields).size
            case ast.Attribute(value=ast.Name(id=layout), attr="struct"):
                return self._size(module, layout)
        return None
