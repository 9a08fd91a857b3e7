"""Places of calls behind which no line can touch the memory of a message before the next call.

Memory that is in use has its lines looked at (`lines.py`), which slows down each of them. Behind
most calls there is nothing to see: all ways from there lead to another call of MPI, and no line on
them uses the contents of anything. What is begun there needs no watch before that call.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from ompy.check.callees import CONTAINERS, ELEMENTS, is_of_program, variable
from ompy.check.program_text import body_of, cached_by_code
from ompy.check.record import OURS
from ompy.check.uses import KEEPING, is_of_mpi, uses_of

STEPS: Final = 2000  # instructions looked at; arbitrary: behind most calls there are some ten
ASKED: Final = 8  # times that one place is looked at anew; arbitrary
# builtin functions that enter no function of the program, unless they get one
_HARMLESS: Final = frozenset(
    {
        "range", "len", "int", "float", "bool", "str", "abs", "divmod", "isinstance", "enumerate",
        "zip", "list", "tuple", "id", "type", "print", "bytearray", "bytes", "memoryview",
    }
)  # fmt: skip
# types of what is no memory of a message: `lines.py` has no eye on a name of such
_OTHERS: Final = frozenset(
    {bool, int, float, complex, str, tuple, list, dict, type, range}
    | {ModuleType, FunctionType, BuiltinFunctionType}
)
_ENDS: Final = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "YIELD_VALUE", "SEND", "RAISE_VARARGS", "RETURN_GENERATOR"}
)
_ALWAYS: Final = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})
_OUT: Final = "RERAISE"  # goes to a handler, or leaves with an error
_NONE: Final = object()
# types of functions in C, compiled modules' among them
_IN_C: Final = frozenset(
    {"method_descriptor", "builtin_function_or_method", "cython_function_or_method", "ufunc"}
)
_OF_REQUESTS: Final = frozenset({"Wait", "Test", "Waitall", "Testall", "Start", "Startall", "Free"})


class Places:
    """The places from which MPI was called.

    Attributes:
        changes: how many became known.
    """

    def __init__(self) -> None:
        self.changes = 0
        self._known: dict[int, tuple[CodeType, set[int]]] = {}
        self._asked: dict[tuple[int, int], list[int]] = {}

    def add_place(self, frame: FrameType) -> None:
        """A frame calls MPI."""
        code = frame.f_code
        self._known.setdefault(id(code), (code, set()))[1].add(_instruction(code, frame.f_lasti))
        self.changes += 1

    def is_quiet(self, frame: FrameType) -> bool:
        """Whether no line behind the call that a frame makes can touch memory before the next."""
        code, at = frame.f_code, _instruction(frame.f_code, frame.f_lasti)
        known = self._known.get(id(code))
        asked = self._asked.setdefault((id(code), at), [])
        if known is None or len(asked) >= ASKED or len(known[1]) in asked or not body_of(code):
            return False
        asked.append(len(known[1]))  # of as many the answer is the same
        lines = _lines_behind(code, at, known[1])
        return lines is not None and not any(_is_busy(frame, line) for line in lines)


def _instruction(code: CodeType, at: int) -> int:
    """The instruction that a frame is at: between it and the next one are its caches."""
    ways = _ways(code)
    while at not in ways and at:
        at -= 1
    return at


def _lines_behind(code: CodeType, at: int, stops: set[int]) -> set[int] | None:
    """The lines that may run behind an instruction before one of others; None: it may return.

    The line of the instruction itself has begun before; it counts only if it may begin anew.
    """
    ways = _ways(code)
    begun = ways[at][1]
    found: set[int] = set()
    seen: set[int] = set()
    ahead = [(each, at) for each in ways[at][0] or ()]
    calls_here = False
    while ahead:
        place, before = ahead.pop()
        if place not in ways or len(seen) > STEPS:
            return None
        following, line, calls = ways[place]
        if line != begun or ways[before][1] != line or place <= before:
            found.add(line)
        if place in seen or place in stops:
            continue
        seen.add(place)
        if following is None:
            return None
        calls_here = calls_here or calls
        ahead += [(each, place) for each in following]
    if calls_here:
        found.add(begun)
    return found


Way = tuple[list[int] | None, int, bool]  # where it goes on, its line, whether it calls


@cached_by_code
def _ways(code: CodeType) -> dict[int, Way]:
    """The instructions of a code: where each goes on; None where that is not in this code."""
    found: dict[int, Way] = {}
    parts = dis.Bytecode(code)
    instructions = list(parts)
    handlers = getattr(parts, "exception_entries", ())
    line = code.co_firstlineno
    for place, each in enumerate(instructions):
        line = _line_of(each, line)
        following = [way.target for way in handlers if way.start <= each.offset < way.end]
        if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            following.append(int(each.argval))
        if each.opname not in _ALWAYS and each.opname != _OUT and place + 1 < len(instructions):
            following.append(instructions[place + 1].offset)
        ends = each.opname in _ENDS
        found[each.offset] = (None if ends else following, line, each.opname.startswith("CALL"))
    return found


def _line_of(instruction: dis.Instruction, before: int) -> int:
    positions = getattr(instruction, "positions", None)
    return (positions.lineno if positions is not None else instruction.starts_line) or before


def _is_busy(frame: FrameType, line: int) -> bool:
    """Whether a line may use the contents of memory, or enter a function of the program."""
    uses, calls = uses_of(frame.f_code), _calls_of(frame.f_code)
    given = [name for name, _, _ in uses.given.get(line, ())]
    names = [*uses.read.get(line, ()), *uses.stored.get(line, ()), *given]
    if any(_may_be_memory(_value(frame, name)) for name in names):
        return True
    lists = [*uses.elements_read.get(line, ()), *uses.elements_stored.get(line, ()), *given]
    if any(_may_have_memory(_value(frame, name)) for name in lists):
        return True
    return any(not _is_harmless(frame, called) for called in calls.get(line, ()))


def _may_be_memory(value: Any) -> bool:
    return type(value) not in _OTHERS and not _is_ours(type(value))


def _may_have_memory(value: Any) -> bool:
    """Whether an element of a list may be memory."""
    if type(value) not in CONTAINERS or len(value) > ELEMENTS:
        return False
    elements = list(value.values()) if type(value) is dict else list(value)
    return any(_may_be_memory(each) for each in elements)


@cached_by_code
def _calls_of(code: CodeType) -> dict[int, list[str]]:
    """The functions that each line calls, as `a.b.c`; `.c` for a method of what has no name."""
    found: dict[int, list[str]] = {}
    for node in _nodes(body_of(code)):
        if isinstance(node, ast.Call):
            text = _dotted(node.func)
            for line in range(node.lineno, (node.func.end_lineno or node.lineno) + 1):
                found.setdefault(line, []).append(text)
    return found


def _nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes that run in a function, without those of functions defined there."""
    ahead: list[ast.AST] = list(body)
    while ahead:
        node = ahead.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            ahead += ast.iter_child_nodes(node)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "", *parts])


def _value(frame: FrameType, name: str) -> Any:
    """What a dotted name stands for, as far as that is known without running anything."""
    first, *rest = name.split(".")
    value = variable(frame, first)
    for part in rest:
        if value is None:
            return _NONE
        own = getattr(value, "__dict__", {})
        if part in own:
            value = own[part]
        else:
            kind = value if isinstance(value, type) else type(value)
            value = next((vars(base)[part] for base in kind.__mro__ if part in vars(base)), None)
        if isinstance(value, (classmethod, staticmethod)):
            value = value.__func__
        elif isinstance(value, property):
            return _NONE
    return value


def _is_harmless(frame: FrameType, called: str) -> bool:
    """Whether what a line calls enters no function of the program."""
    first, _, last = called.rpartition(".")
    if not first:
        return _is_harmless_name(frame, last, method=called != last)
    value = _value(frame, called)
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType):
        return _is_ours(value) or not is_of_program(value.__code__)
    if type(value).__name__ in _IN_C:
        return _is_ours(value) or isinstance(value, BuiltinFunctionType) or last in KEEPING
    return False


def _is_harmless_name(frame: FrameType, name: str, *, method: bool) -> bool:
    """The same for a function's own name, or for a method of something that has none."""
    if method:
        return name[:1].isupper() and (is_of_mpi(name) or name in _OF_REQUESTS)
    value = _value(frame, name)
    if value is None:
        return name in _HARMLESS
    if isinstance(value, MethodType):
        value = value.__func__
    return callable(value) and _is_ours(value)


def _is_ours(function: Any) -> bool:
    return str(getattr(function, "__module__", None) or "").partition(".")[0] in OURS
