"""The declarations that Cython needs of a module, from its own annotations.

`ompy/compiled.py` says what they mean. The names of a class, signatures and typed local variables
become a `.pxd`; the source is then compiled without the words that only this one reads.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ompy.cli.building.constants import Constants, c_number
from ompy.cli.building.sources import (
    ALWAYS,
    CHECKING,
    Function,
    Imported,
    Source,
    SourceError,
    Tree,
    attributes,
    first_line,
    mark,
    methods,
    own_nodes,
    plain_functions,
)
from ompy.cli.hot import HOT, INLINE

OBJECT: Final = "object"
NUMBERS: Final = {
    "int": "long long",
    "U64": "unsigned long long",
    "bool": "bint",
    "float": "double",
}
BUILTINS: Final = frozenset(("bytearray", "bytes", "dict", "list", "set", "tuple"))
VIEWS: Final = {"U64View": "unsigned long long[::1]"}
PLAIN: Final = {**NUMBERS, **VIEWS, **{name: name for name in BUILTINS}}
NEVER_NONE: Final = frozenset((*NUMBERS.values(), *VIEWS.values()))
# what a function returns that raises; other values of a number could be meant, so that one is asked
RAISES: Final = {
    "bint": " except -1",
    "long long": " except? -99",  # arbitrary: a number that is seldom returned
    "unsigned long long": " except? 99",  # the same
    "double": " except? -99",  # the same
}
KNOWN: Final = re.compile(r"^(?:cdef|cpdef)\s+(?:class\s+(\w+)|[^(=\n]*?(\w+)\s*\()", re.MULTILINE)


class Declarations:
    """The declarations of one module."""

    def __init__(self, tree: Tree, constants: Constants, name: str) -> None:
        """Read the module.

        Args:
            tree: all sources.
            constants: of them.
            name: of the module.

        Raises:
            SourceError: it cannot be compiled, or is not there.
        """
        self._tree = tree
        self._constants = constants
        source = tree.source(name)
        if source is None:
            raise SourceError(f"{name} is to be compiled and is not there")
        self._source: Source = source

    def text(self) -> str:
        """The `.pxd`.

        Raises:
            SourceError: a marked function has what C functions have not.
        """
        numbers = [f"cdef {kind} {name}" for name, kind in self.numbers().items()]
        classes = [
            line for node in self._source.classes.values() for line in ["", *self._class(node)]
        ]
        functions = [
            line
            for node in self._source.functions.values()
            for line in self._function(node, "", own=False)
        ]
        imports = ["cimport cython", "", *self._imports()]
        return "\n".join([*imports, "", *numbers, *classes, "", *functions]) + "\n"

    def _imports(self) -> Iterator[str]:
        """A line for each module of which something is known in C."""
        names: dict[str, list[str]] = {}
        for here, found in self._source.imports.items():
            if found.under != CHECKING and self._is_known(found):
                told = found.name if found.name == here else f"{found.name} as {here}"
                names.setdefault(found.module, []).append(told)
        for module in sorted(names):
            yield f"from {module} cimport {', '.join(sorted(names[module]))}"

    def _is_known(self, imported: Imported) -> bool:
        """Whether there is a C class or function behind a name, or a module of them."""
        inside = f"{imported.module}.{imported.name}"
        if self._tree.written(inside) or (inside in HOT and self._has_functions(inside)):
            return True
        written = self._tree.written(imported.module)
        if written:
            return imported.name in {one or other for one, other in KNOWN.findall(written)}
        source = self._tree.source(imported.module)
        if source is None:
            return False
        return imported.name in source.classes or imported.name in source.functions

    def _has_functions(self, module: str) -> bool:
        source = self._tree.source(module)
        return source is not None and bool(source.functions)

    def numbers(self) -> dict[str, str]:
        """The constants of which the type in C is known, own and imported ones.

        Their values make whole numbers of them, or what they are annotated with.
        """
        found = {}
        for name in [*self._source.imports, *self._source.constants]:
            value = self._constants.value(self._source.name, name)
            kind = self._told(name) if value is None else c_number(value)
            if kind:
                found[name] = kind
        return found

    def _told(self, name: str) -> str:
        """What a constant is annotated with, as far as it is no object: `Final[int]`."""
        source = self._source
        imported = source.imports.get(name)
        if imported is not None:
            other = self._tree.source(imported.module)
            if other is None or imported.under != ALWAYS or imported.name not in other.told:
                return ""
            source, name = other, imported.name
        match source.told.get(name):
            case ast.Name(id=told):
                return PLAIN.get(told, "")
            case ast.Subscript(value=ast.Name(id=told)) if source is self._source:
                return told if told in BUILTINS else ""
        return ""

    def hints(self) -> dict[int, str]:
        """What Cython is told of functions without a mark: their variables of compiled classes.

        Numbers stay objects there: in a function that is no C they may be of any size.

        Returns:
            The words, by the line that a function begins with, decorators included.
        """
        found = {}
        for function in plain_functions(self._source.tree):
            arguments = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
            told = ", ".join(
                f'{name}="{kind}"'
                for name, kind in self._locals(function).items()
                if self._class_name(kind) and name not in arguments
            )
            if told:
                found[first_line(function)] = told
        return found

    def _class(self, node: ast.ClassDef) -> Iterator[str]:
        base = ""
        for parent in node.bases:
            if not isinstance(parent, ast.Name) or self._class_name(parent.id) is None:
                place = self._source.place(node)
                raise SourceError(f"{place}: {ast.unparse(parent)} is no compiled class")
            base = f"({parent.id})"
        yield f"cdef class {node.name}{base}:"
        body = [*self._attributes(node)]
        for each in methods(node):
            body += self._function(each, "    ", own=True)
        yield from body or ["    pass"]

    def _attributes(self, node: ast.ClassDef) -> Iterator[str]:
        for each in attributes(node):
            if not isinstance(each.target, ast.Name):
                raise SourceError(f"{self._source.place(each)}: not an attribute's name")
            name, annotation = each.target.id, each.annotation
            shown = not name.startswith("_")
            match annotation:
                case ast.Subscript(value=ast.Name(id="Shown"), slice=inner):
                    annotation, shown = inner, True
            kind = self._type(annotation)
            is_object = kind not in VIEWS.values() and "." not in kind
            yield f"    cdef {'public ' if shown and is_object else ''}{kind} {name}"
        for name in _more_slots(node):
            yield f"    cdef {'dict' if name == '__dict__' else OBJECT} {name}"

    def _function(self, node: ast.FunctionDef, indent: str, *, own: bool) -> Iterator[str]:
        found = node.args
        if found.vararg or found.kwarg or found.kwonlyargs or found.posonlyargs:
            raise SourceError(f"{self._source.place(node)}: {node.name} has arguments C has not")
        arguments = [self._argument(one) for one in found.args]
        if own:
            arguments[0] = found.args[0].arg
        for place in range(1, len(found.defaults) + 1):
            arguments[-place] += "=*"
        if local := self._locals(node):
            told = ", ".join(f'{name}="{kind}"' for name, kind in local.items())
            yield f"{indent}@cython.locals({told})"
        kind = self._type(node.returns) if node.returns else OBJECT
        returned = "" if kind == OBJECT else f"{kind} "
        how = "cdef" if mark(node) == "cfunc" else "cpdef"
        raises = RAISES.get(kind, "")
        yield f"{indent}{how} {returned}{node.name}({', '.join(arguments)}){raises}"

    def _argument(self, one: ast.arg) -> str:
        kind = self._type(one.annotation) if one.annotation else OBJECT
        return one.arg if kind == OBJECT else f"{kind} {one.arg}"

    def _locals(self, function: Function) -> dict[str, str]:
        """The local variables whose annotation says more than that they are objects."""
        found = {}
        for node in own_nodes(function):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                kind = self._type(node.annotation)
                if kind != OBJECT:
                    found[node.target.id] = kind
        for name, kind in self._asserted(function):
            found.setdefault(name, kind)
        return found

    def _asserted(self, function: Function) -> Iterator[tuple[str, str]]:
        """Local variables of which the line after their only assignment asserts the class."""
        times = Counter(
            node.id
            for node in own_nodes(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        for one, other in _neighbours(function):
            match one, other:
                case (
                    ast.Assign(targets=[ast.Name(id=name)]),
                    ast.Assert(
                        test=ast.Call(
                            func=ast.Name(id="isinstance"),
                            args=[ast.Name(id=told), ast.Name(id=kind)],
                        )
                    ),
                ) if name == told and times[name] == 1 and self._class_name(kind):
                    yield name, kind

    def _type(self, node: ast.expr) -> str:
        """An annotation in C."""
        match node:
            case ast.Name(id=name):
                return PLAIN.get(name) or self._class_name(name) or self._alias(name)
            case ast.Subscript(value=ast.Name(id=name)) if name in BUILTINS:
                return name
            case ast.Attribute(value=ast.Name(id=module), attr=name) if self._is_struct(
                module, name
            ):
                return f"{module}.{name}"
            case ast.BinOp(left=inner, op=ast.BitOr(), right=ast.Constant(value=None)):
                kind = self._type(inner)
                return OBJECT if kind in NEVER_NONE else kind
        return OBJECT

    def _alias(self, name: str) -> str:
        """What an own name for a type stands for: `Pair = tuple[int, int]`."""
        value = self._source.constants.get(name)
        return self._type(value) if isinstance(value, ast.Subscript | ast.BinOp) else OBJECT

    def _is_struct(self, module: str, name: str) -> bool:
        """Whether a name of an imported module is a C structure, which only its functions know."""
        found = self._source.imports.get(module)
        if found is None or found.name not in INLINE:
            return False
        return f"struct {name} " in self._tree.written(f"{found.module}.{found.name}")

    def _class_name(self, name: str) -> str | None:
        """The name under which a compiled class is known here."""
        if name in self._source.classes:
            return name
        found = self._source.imports.get(name)
        if found is None or found.under == CHECKING or not self._is_known(found):
            return None
        return name


def _neighbours(function: Function) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Each statement with the one after it, in all blocks."""
    for node in own_nodes(function):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                yield from pairwise(body)


def _more_slots(node: ast.ClassDef) -> list[str]:
    """Of `__slots__ = (*__annotations__, "__weakref__")` what is not annotated."""
    for each in node.body:
        match each:
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=ast.Tuple(elts=elements)):
                return [
                    one.value
                    for one in elements
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                ]
    return []
