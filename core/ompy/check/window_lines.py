"""Which parts of which arrays a line of a program surely reads or stores.

Only what is certain counts: not what may be skipped by a condition on the same line, not what is
but another name for memory, and not what happens behind a call that may be MPI's.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any, Final

from ompy.check.callees import value_of
from ompy.check.program_text import (
    attributes_in,
    body_of,
    cached_by_code,
    expression_name,
    has_slice,
)

# functions of Python's and methods of arrays that look at all elements
_READING: Final = frozenset(
    {
        "print", "int", "float", "sum", "max", "min", "list", "str", "repr", "sorted", "bool",
        "all", "any", "abs",
    }
)  # fmt: skip
_METHODS: Final = frozenset(
    {
        "sum", "copy", "tolist", "mean", "max", "min", "all", "any", "item", "astype", "tobytes",
        "dot", "std", "var", "prod", "argmax", "argmin",
    }
)  # fmt: skip
_CHANGING: Final = frozenset({"fill", "sort"})
_NUMPY: Final = frozenset({"np", "numpy"})
# functions of NumPy that look at an array's elements
_OF_NUMPY: Final = frozenset(
    {
        "sum", "all", "any", "max", "min", "mean", "array", "array_equal", "allclose", "copy",
        "dot", "prod", "abs", "unique", "sort", "std", "count_nonzero",
    }
)  # fmt: skip
_PURE: Final = frozenset({"range", "len", "id", "type", "isinstance", "tuple", "bytes", "round"})


class Touch:
    """A part of an array that a line uses.

    Attributes:
        name: of the array.
        stores: it is changed, else read.
        polls: it is read in a loop, which may wait for a change.
    """

    def __init__(self, name: str, subscript: ast.expr | None, stores: bool, single: bool) -> None:
        self.name = name
        self.stores = stores
        self.polls = False
        self.known = True
        self._single = single
        self._code: CodeType | None = None
        self._attributes: list[str] = []
        if subscript is not None:
            attributes = attributes_in(subscript)
            self.known = attributes is not None
            self._attributes = attributes or []
        if subscript is not None and self.known:
            self._code = compile(ast.Expression(subscript), "<subscript>", "eval")

    def part(self, frame: FrameType) -> Any:
        """The part, as an array; None where that is not known."""
        array = value_of(frame, self.name)
        if array is None or not self.known or self._code is None:
            return array if self.known else None
        if any(value_of(frame, each) is None for each in self._attributes):
            return None  # perhaps a property, which would run
        try:
            place = eval(self._code, frame.f_globals, frame.f_locals)  # noqa: S307 - the program's
            places = place if isinstance(place, tuple) else (place,)
            if not all(_is_simple(each) for each in places):
                return None
            if Ellipsis not in places:
                places = (*places, Ellipsis)
            found = array[places]
        except Exception:
            return None  # the line itself will say what is wrong
        return None if self._single and found.ndim else found


def _is_simple(place: Any) -> bool:
    """Whether a subscript gives a part of the array and not a copy."""
    if isinstance(place, bool):
        return False
    return isinstance(place, (int, slice)) or (hasattr(place, "__index__") and not place.shape)


@cached_by_code
def touches_of(code: CodeType) -> dict[int, list[Touch]]:
    """By line, what a function's lines surely use."""
    statements = list(_statements(body_of(code)))
    lines = Counter(each.lineno for each in statements)
    polling = _polling(statements)
    found: dict[int, list[Touch]] = {}
    for statement in statements:
        if lines[statement.lineno] > 1:
            continue  # which of them has run is not known
        for line, touch in _Finder(statement).touches():
            touch.polls = not touch.stores and statement in polling
            found.setdefault(line, []).append(touch)
    return found


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a function, without those of functions in it."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, ()))
        for handler in getattr(statement, "handlers", ()):
            yield from _statements(handler.body)


def _polling(statements: Iterable[ast.stmt]) -> set[ast.stmt]:
    """Those in which a program may wait until memory is changed."""
    found: set[ast.stmt] = set()
    for statement in statements:
        if isinstance(statement, ast.While):
            found.add(statement)
            found |= {each for each in _statements(statement.body) if isinstance(each, ast.If)}
    return found


class _Finder:
    """Finds what one statement uses."""

    def __init__(self, statement: ast.stmt) -> None:
        self._statement = statement
        self._found: list[tuple[ast.expr, int, Touch]] = []

    def touches(self) -> Iterator[tuple[int, Touch]]:
        """Lines, and what they use."""
        statement = self._statement
        parts: list[ast.expr] = []
        match statement:
            case ast.Assign(targets=targets, value=value):
                into_array = any(isinstance(each, ast.Subscript) for each in targets)
                self._look(value, reads=into_array)
                for target in targets:
                    self._store(target)
                parts = [value, *targets]
            case ast.AugAssign(target=target, value=value):
                self._look(value, reads=True)
                self._store(target, whole=True)
                parts = [value, target]
            case (
                ast.Expr(value=value)
                | ast.If(test=value)
                | ast.Assert(test=value)
                | ast.While(test=value)
            ):
                self._look(value, reads=False)
                parts = [value]
            case ast.Return(value=ast.expr() as value):
                self._look(value, reads=False)
                parts = [value]
        calls = [
            call
            for part in parts
            for call in ast.walk(part)
            if isinstance(call, ast.Call) and not _is_harmless(call)
        ]
        for node, line, touch in self._found:
            if all(_is_argument(node, call) and not touch.stores for call in calls):
                yield line, touch

    def _add(
        self, node: ast.expr, subscript: ast.expr | None, *, stores: bool, single: bool = False
    ) -> None:
        array = node.value if isinstance(node, ast.Subscript) else node
        name = expression_name(array)
        if name:
            self._found.append((node, node.lineno, Touch(name, subscript, stores, single)))

    def _store(self, target: ast.expr, *, whole: bool = False) -> None:
        if isinstance(target, ast.Subscript):
            self._add(target, target.slice, stores=True)
            self._look(target.slice, reads=False)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self._store(each)
        elif whole:
            self._add(target, None, stores=True)

    def _look(self, node: ast.expr | None, *, reads: bool) -> None:
        """Look for reads in an expression; `reads`: its value's elements are looked at."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            if reads and expression_name(node):
                self._add(node, None, stores=False)
        elif isinstance(node, ast.Subscript):
            if reads or not has_slice(node):
                self._add(node, node.slice, stores=False, single=not reads)
            self._look(node.slice, reads=False)
        elif isinstance(node, ast.Call):
            self._look_call(node)
        elif node is not None:
            for part, read in _parts(node):
                self._look(part, reads=read)

    def _look_call(self, node: ast.Call) -> None:
        called = node.func
        reads = isinstance(called, ast.Name) and called.id in _READING
        if isinstance(called, ast.Attribute):
            if expression_name(called.value) in _NUMPY:
                reads = called.attr in _OF_NUMPY
            elif called.attr in _METHODS:
                self._look(called.value, reads=True)
            elif called.attr in _CHANGING and isinstance(called.value, ast.Name):
                self._add(called.value, None, stores=True)
        for argument in (*node.args, *(each.value for each in node.keywords)):
            self._look(argument, reads=reads)


def _parts(node: ast.expr) -> list[tuple[ast.expr, bool]]:
    """The parts of an expression that are surely evaluated, and whether it looks at elements."""
    found: list[tuple[ast.expr, bool]] = []
    match node:
        case ast.BinOp(left=left, right=right):
            found = [(left, True), (right, True)]
        case ast.UnaryOp(operand=operand):
            found = [(operand, True)]
        case ast.Compare(left=left, ops=ops, comparators=others):
            looks = not any(isinstance(each, (ast.Is, ast.IsNot)) for each in ops)
            found = [(each, looks) for each in (left, *others[:1])]
        case ast.BoolOp(values=values):
            found = [(values[0], False)]
        case ast.IfExp(test=test):
            found = [(test, False)]
        case ast.JoinedStr(values=values):
            found = [(each.value, True) for each in values if isinstance(each, ast.FormattedValue)]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            found = [(part, False) for part in parts]
    return found


def _is_harmless(call: ast.Call) -> bool:
    """Whether a call is surely none of MPI's, nor one that makes some."""
    called = call.func
    if isinstance(called, ast.Name):
        return called.id in _READING or called.id in _PURE
    if not isinstance(called, ast.Attribute):
        return False
    if expression_name(called.value) in _NUMPY:
        return True
    return called.attr in _METHODS or called.attr in _CHANGING


def _is_argument(node: ast.expr, call: ast.Call) -> bool:
    """Whether something is looked at before a call is made, as an argument of it is."""
    given = (*call.args, *(each.value for each in call.keywords))
    return any(node is each for argument in given for each in ast.walk(argument))
