"""Which lines of a function use the contents of which names, and which parts: by its source."""

from __future__ import annotations

import ast
from functools import cached_property
from types import CodeType
from typing import Final, NamedTuple

from ompy.check.program_text import body_of, cached_by_code, dotted_name, has_slice

# attributes of an array that say nothing of its contents
_HARMLESS: Final = frozenset(
    {
        "shape", "size", "dtype", "ndim", "nbytes", "itemsize", "flags", "strides", "T", "data",
        "base", "view", "reshape", "ravel", "real", "imag", "__array_interface__", "ctypes",
        "cast", "obj", "format", "readonly", "toreadonly", "contiguous", "release", "transpose",
    }
)  # fmt: skip
# functions and methods that keep what they get, or ask what it is
KEEPING: Final = frozenset(
    {"append", "add", "extend", "insert", "put", "appendleft", "setdefault", "update"}
    | {"zeros_like", "empty_like", "ones_like", "full_like", "shape", "ndim", "may_share_memory"}
    | {"len", "id", "type", "isinstance", "tuple", "zip", "enumerate", "memoryview", "dict"}
)


# methods that may end what uses memory
ENDING: Final = frozenset(
    {
        "Wait", "Waitall", "Waitany", "Waitsome", "wait", "waitall", "waitany", "waitsome",
        "Test", "Testall", "Testany", "Testsome", "test", "testall", "testany", "testsome",
        "Fence", "Unlock", "Unlock_all", "Complete", "Free", "Close", "Disconnect", "Parrived",
        "Flush", "Flush_all", "Flush_local", "Flush_local_all",
    }
)  # fmt: skip


# what is done with a name's contents: the index of the part, None for all of it
Parts = list[ast.expr | None]
Table = dict[int, dict[str, Parts]]  # by line and name
Given = dict[int, list[tuple[str, ast.expr | None, str]]]  # by line: name, part, function
INTO: Final = "[]"  # behind a name, in place of a function: what `name[0] = value` stores into


class Name(NamedTuple):
    """A name of a function.

    Attributes:
        text: as a line has it.
        first, attribute: its parts; the attribute may be one of an attribute, or empty.
        used: lines use it themselves.
        called: functions that get it.
    """

    text: str
    first: str
    attribute: str
    used: bool
    called: tuple[str, ...]


class Uses:
    """Where a function uses names: by line, names read, stored into, and given to functions.

    An object whose method is called is given to it. What is done with the contents of an element,
    as in `a[0][1]` and `a[0].sum()`, is told of by the index of that, for lists of arrays.
    """

    def __init__(self) -> None:
        self.read: Table = {}
        self.stored: Table = {}
        self.elements_read: Table = {}
        self.elements_stored: Table = {}
        self.given: Given = {}

    @cached_property
    def names_stored(self) -> list[Name]:
        """The names that lines store into, or give to functions."""
        return self._names(self.stored, self.elements_stored)

    @cached_property
    def names_used(self) -> list[Name]:
        """The names that lines read, store into, or give to functions."""
        return self._names(self.stored, self.read, self.elements_stored, self.elements_read)

    def _names(self, *tables: Table) -> list[Name]:
        plain = {name for table in tables for names in table.values() for name in names}
        given = {(name, called) for line in self.given.values() for name, _, called in line}
        found = []
        for text in sorted(plain | {name for name, _ in given}):
            first, _, attribute = text.partition(".")
            called = tuple(sorted(each for name, each in given if name == text))
            found.append(Name(text, first, attribute, text in plain, called))
        return found


@cached_by_code
def uses_of(code: CodeType) -> Uses:
    """The uses in a function; none where its source is not there."""
    collector = _Collector()
    for statement in body_of(code):
        collector.note_ends(statement)
        collector.visit(statement)
    return collector.uses


class _Collector(ast.NodeVisitor):
    """Collects what uses the contents of what a name stands for; a new name for it does not.

    A line is looked at before any of it has run. So what it uses behind a call that may have ended
    the operation is left out: `request.Wait(); print(room)` is right.
    """

    def __init__(self) -> None:
        self.uses = Uses()
        self._called: set[int] = set()  # lines of statements that have calls
        self._after: set[int] = set()  # those on which another statement follows
        self._ended: dict[int, int] = {}  # lines, and the column where something may have ended

    def visit(self, node: ast.AST) -> None:
        """Go on to a node; a statement may be behind others on its line."""
        if isinstance(node, ast.stmt):
            self._after |= self._called
        super().visit(node)

    def note_ends(self, statement: ast.AST) -> None:
        """Find what may end an operation in a statement, and in those within it."""
        for node in ast.walk(statement):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in ENDING:
                line, column = called.lineno, called.col_offset
                self._ended[line] = min(column, self._ended.get(line, column))

    def _is_left_out(self, node: ast.expr) -> bool:
        """Whether a use is behind what may have ended the operation."""
        line = node.lineno
        return line in self._after or node.col_offset > self._ended.get(line, node.col_offset)

    def _note(self, table: Table, node: ast.expr, name: str, part: ast.expr | None) -> None:
        if not self._is_left_out(node):
            table.setdefault(node.lineno, {}).setdefault(name, []).append(part)

    def _note_element(self, table: Table, node: ast.AST) -> None:
        """Something is done with the contents of `a[0]`, if that is what a node is."""
        name = dotted_name(node.value) if isinstance(node, ast.Subscript) else ""
        if name and isinstance(node, ast.Subscript):
            self._note(table, node, name, node.slice)

    def _reads(self, node: ast.AST | None) -> None:
        """The value of an expression is used."""
        part = None
        if isinstance(node, ast.Subscript):
            self._note_element(self.uses.elements_read, node)
            part, node = node.slice, node.value
        name = dotted_name(node)
        if name and isinstance(node, ast.expr):
            self._note(self.uses.read, node, name, part)

    def _gives(self, node: ast.AST, called: str) -> None:
        """A function gets the value of an expression."""
        part = None
        if isinstance(node, ast.Subscript):
            part, node = node.slice, node.value
        name = dotted_name(node)
        if name and isinstance(node, ast.expr) and not self._is_left_out(node):
            given = self.uses.given.setdefault(node.lineno, [])
            given.append((name, part, called))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Another function: its lines are not of this frame."""

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Likewise."""

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Likewise."""

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Likewise."""

    def visit_Call(self, node: ast.Call) -> None:
        """What MPI gets, and what keeps or asks of what, uses no contents."""
        self._called.add(node.lineno)
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else dotted_name(called)
        given = [*node.args, *(each.value for each in node.keywords)]
        if name not in KEEPING and not (isinstance(called, ast.Attribute) and is_of_mpi(name)):
            for argument in given:
                self._gives(argument, dotted_name(called))
            if isinstance(called, ast.Attribute):
                self._gives(called.value, dotted_name(called))
        elif name not in KEEPING:
            given = [each for each in given if not isinstance(each, ast.Subscript)]
        for part in (called, *given):
            self.visit(part)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """A method or a property of an array looks at its contents, but for a few."""
        if node.attr not in _HARMLESS:
            self._reads(node.value)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """An element is read or stored; a part of an array is only another name for it."""
        name = dotted_name(node.value)
        loads = isinstance(node.ctx, ast.Load)
        if name and loads:
            if not has_slice(node):
                self._note(self.uses.read, node, name, node.slice)
        elif name:
            self._note(self.uses.stored, node, name, node.slice)
        elif not loads or not has_slice(node):
            uses = self.uses.elements_read if loads else self.uses.elements_stored
            self._note_element(uses, node.value)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """`a[0] = b` reads b if a is an array; a list keeps it."""
        for target in node.targets:
            name = dotted_name(target.value) if isinstance(target, ast.Subscript) else ""
            if name:
                self._gives(node.value, name + INTO)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """`a += 1` and `a[0] += 1` store."""
        part = node.target.slice if isinstance(node.target, ast.Subscript) else None
        target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
        name = dotted_name(target)
        if name:
            self._note(self.uses.stored, node.target, name, part)
        # of a list of arrays `a[0] += 1` stores into the array
        self._note_element(self.uses.elements_stored, node.target)
        self._reads(node.value)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Arithmetic reads."""
        self._reads(node.left)
        self._reads(node.right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Likewise."""
        self._reads(node.operand)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Likewise, but for `a is None`."""
        if not all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
            for part in (node.left, *node.comparators):
                self._reads(part)
        self.generic_visit(node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> None:
        """A text is made of it."""
        self._reads(node.value)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        """Its elements are read."""
        self._reads(node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Likewise."""
        self._reads(node.iter)
        self.generic_visit(node)


def is_of_mpi(name: str) -> bool:
    """Whether a method of this name is a call of MPI's that gets buffers."""
    from ompy.check import collectives, files, messages

    known = (messages.HANDLERS, collectives.HANDLERS, _MORE, files.ACCESSES)
    return any(name in names for names in known) or name.endswith(("_all_begin", "_all_end"))


_MORE: Final = frozenset(
    {
        "Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap", "Rput",
        "Rget", "Raccumulate", "Rget_accumulate", "Pack", "Unpack",
    }
)  # fmt: skip
