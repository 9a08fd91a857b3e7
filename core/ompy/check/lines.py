"""Watches which lines of the program run while memory of theirs is in use by a pending operation.

NumPy and the interpreter do not say when an array is read. But the program's lines do: while an
operation is pending, each line that runs in a function that has a name for its memory is looked at
for that name (`uses.py`). Lines that call MPI with it are left to the calls. Of an array of which
only a part is in a message, the parts that a line uses are compared with it. Functions of the
program that such a line calls with it are looked at likewise (`callees.py`).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, Final

from ompy.check.callees import (
    CONTAINERS,
    attribute_of,
    contains,
    enters_program,
    function_called,
    gets,
    holds,
    is_followed,
    is_of_base,
    is_or_contains,
    is_shared,
    owner_of,
    value_of,
)
from ompy.check.program_text import is_plain
from ompy.check.uses import INTO, Name, Parts, Uses, uses_of
from ompy.mpi.buffers.addresses import address_of

_NOTHING: Final = object()  # what no name stands for
# types of what neither is memory nor has any as an attribute
_OTHERS: Final = frozenset(
    {type(None), bool, int, float, complex, str, tuple, list, dict, type}
    | {ModuleType, FunctionType, BuiltinFunctionType}
)
# functions that read all arrays of a list
_JOINING: Final = frozenset(
    f"{module}.{name}"
    for module in ("np", "numpy")
    for name in ("concatenate", "stack", "vstack", "hstack", "sum", "mean", "array", "column_stack")
)
WORK: Final = 10_000  # of finding out whether two arrays share memory; arbitrary

Seen = Callable[[FrameType, str, bool], Any]
Follower = Callable[[FrameType], bool]


class Watched:
    """One name of a frame, while its memory is in use.

    Attributes:
        name: as the function has it.
        holder: what the name stands for: the memory, an array of which that is a part, or a list
            that has one of these as an element.
        memory: of the message.
        reads: reading it is wrong, too.
        seen: told of a line that uses it: the frame, the name, whether it stores.
        calls: functions that get it are looked at too.
        region: where the message has only some of its bytes: which (`buffers.py`); else None.
        root: what this was made for, where a function was called.
    """

    def __init__(
        self, name: str, holder: Any, memory: Any, reads: bool, seen: Seen, calls: bool,
        region: Any = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.holder = holder
        self.memory = memory
        self.reads = reads
        self.seen = seen
        self.calls = calls
        self.region = region
        self.root = self

    def is_touched(self, frame: FrameType, parts: Parts) -> bool:
        """Whether any of these parts is of the memory."""
        if not parts or value_of(frame, self.name) is not self.holder:
            return False
        if self.region is not None:
            return any(self._is_of_region(frame, part) for part in parts)
        if self.holder is self.memory:
            return True
        return any(self._shares(frame, part) for part in parts)

    def _is_of_region(self, frame: FrameType, part: ast.expr | None) -> bool:
        """Whether a part of an array has a byte of the message. What uses all of it may not."""
        if part is None or not is_plain(part) or not _is_array(self.holder):
            return False
        try:
            index, region = _value_of_index(frame, part), self.region
            whole = index if isinstance(index, tuple) else (index,)
            slices = any(isinstance(each, slice) for each in whole)
            used = self.holder[_as_slices(index)]
            # a row may only get a name by it
            if used.size > WORK or (len(whole) < used.ndim and not slices):
                return False
            base = used.__array_interface__["data"][0]
            runs = ((at, at + used.itemsize) for at in _offsets(used))
            return bool(region.overlaps(type(region)(region.view, base, tuple(runs))))
        except Exception:
            return False  # the line itself says what is wrong with it

    def is_element_touched(self, frame: FrameType, parts: Parts) -> bool:
        """Whether the contents of any of these elements of a list are of the memory."""
        return any(self._element(frame, part) is not None for part in parts)

    def _element(self, frame: FrameType, part: ast.expr | None) -> Any:
        """The element of a list at an index, if it is of the memory alone; None for others."""
        if part is None or type(self.holder) not in CONTAINERS or not is_plain(part):
            return None
        if self.region is not None:
            return None  # which part of the element is used nobody knows
        if value_of(frame, self.name) is not self.holder:
            return None
        try:
            element = self.holder[_value_of_index(frame, part)]
        except Exception:
            return None  # the line itself says what is wrong with it
        return element if element is self.memory or _is_within(element, self.memory) else None

    def is_read_by_call(self, frame: FrameType, part: ast.expr | None, called: str) -> bool:
        """Whether a function that gets it reads it, as far as its own lines will not tell."""
        of_list = type(self.holder) in CONTAINERS
        if called.endswith(INTO) and not _is_array(value_of(frame, called.removesuffix(INTO))):
            return False
        if of_list and part is None:
            return called in _JOINING and value_of(frame, self.name) is self.holder
        given = self._element(frame, part) if of_list else self.holder
        if given is None or not (of_list or self.is_touched(frame, [part])):
            return False
        function = function_called(frame, called) if self.calls else None
        if function is None:
            return True
        # of a part that another function gets nobody knows which it uses
        return given is self.memory and not is_followed(function)

    def _shares(self, frame: FrameType, part: ast.expr | None) -> bool:
        """Whether a part of what the name stands for, None for all of it, is of the memory."""
        if part is None:
            # what is done with all of a buffer, as `find` and `unpack_from` do, may be with a part
            return _is_array(self.holder) and _share_memory(self.holder, self.memory)
        if not is_plain(part):
            return False
        try:
            index = _value_of_index(frame, part)
            whole = self.holder if _is_array(self.holder) else memoryview(self.holder)
            return _share_memory(whole[_as_slices(index)], self.memory)
        except Exception:
            return False  # the line itself says what is wrong with it


def _offsets(array: Any) -> list[int]:
    """Where the elements of an array are, in bytes behind the first one."""
    found = [0]
    for count, stride in zip(array.shape, array.strides, strict=True):
        found = [at + each * stride for at in found for each in range(count)]
    return found


def _value_of_index(frame: FrameType, part: ast.expr) -> Any:
    """What an index is before its line runs. It has to be plain."""
    code = compile(ast.Expression(body=part), "<index>", "eval")
    names = {**frame.f_globals, **frame.f_locals}
    return eval(code, {"__builtins__": {}}, names)  # noqa: S307 - plain nodes: see above


def _is_array(value: Any) -> bool:
    """Whether it is one of NumPy's."""
    return hasattr(value, "dtype")


def _share_memory(one: Any, other: Any) -> bool:
    """Whether two arrays or buffers have a byte in common, as far as that is known."""
    try:
        if _is_array(one) and _is_array(other):
            return bool(sys.modules["numpy"].shares_memory(one, other, max_work=WORK))
    except Exception:
        return False  # too much work to find out
    ours, theirs = _range_of(one), _range_of(other)
    return ours.start < theirs.stop and theirs.start < ours.stop


def _is_within(one: Any, other: Any) -> bool:
    """Whether all bytes of an array or a buffer are of another one, as far as that is known."""
    ours, theirs = _range_of(one), _range_of(other)
    return theirs.start <= ours.start < ours.stop <= theirs.stop


def _range_of(memory: Any) -> range:
    """The addresses of an array or a buffer; none where these are not known, or have gaps."""
    try:
        view = memoryview(memory)
        begin = address_of(view) if view.contiguous and view.nbytes else 0
    except Exception:
        return range(0)  # it is none, or gone
    return range(begin, begin + view.nbytes) if begin else range(0)


def _as_slices(index: Any) -> Any:
    """An index whose result is a part of the array, never a copy of an element."""
    if isinstance(index, tuple):
        return tuple(_as_slices(each) for each in index)
    if hasattr(index, "__index__") and not isinstance(index, bool):
        number = index.__index__()
        return slice(number, number + 1 or None)
    return index


class LineWatch:
    """The frames of a rank that are watched."""

    def __init__(self) -> None:
        self._frames: dict[int, tuple[FrameType, list[Watched]]] = {}
        self._followed: dict[int, tuple[FrameType, Follower]] = {}
        self._on = False

    def watch(
        self, frame: FrameType, memory: Any, *, reads: bool, seen: Seen, calls: bool = False,
        later: bool = False, region: Any = None,
    ) -> list[Watched]:  # fmt: skip
        """Watch the names that a frame has for some memory; none where that is not possible.

        Args:
            frame: the function's.
            memory: of the message.
            reads: reading it is wrong, too.
            seen: told of each line that uses it.
            calls: look at functions that get it, too.
            later: also if there is no such name yet: a function may return the memory.
            region: which of its bytes are in use, where that is not all of them.
        """
        if not self._on and sys.gettrace() is not None:
            return []  # a debugger's, or coverage's
        uses = uses_of(frame.f_code)
        names = uses.names_used if reads else uses.names_stored
        found = [
            Watched(name, holder, memory, reads, seen, calls, region)
            for name, holder in _names_for(frame, memory, names, reads, calls)
        ]
        if not found and (later or (calls and is_shared(frame, memory, owner_of(memory)))):
            found = [Watched("", _NOTHING, memory, reads, seen, calls, region)]
        if found:
            self._frames.setdefault(id(frame), (frame, []))[1].extend(found)
            self._trace(frame)
        return found

    def callers_of(self, frame: FrameType) -> list[FrameType]:
        """The watched functions that led to one which is looked at, from the last to call.

        Who has no name for the memory, as a wrapper, only hands it on: its caller is told, too.
        """
        found: list[FrameType] = []
        caller = frame.f_back
        while caller is not None and id(caller) in self._frames:
            found.append(caller)
            if any(each.name for each in self._frames[id(caller)][1]):
                break
            caller = caller.f_back
        return found

    def follow(self, frame: FrameType, told: Follower) -> None:
        """Tell of each line of a frame before it is looked at for names, until that gives False.

        When the frame's function returns, of those of its caller.
        """
        if self._on or sys.gettrace() is None:
            self._followed[id(frame)] = (frame, told)
            self._trace(frame)

    def _trace(self, frame: FrameType) -> None:
        frame.f_trace = self._line
        frame.f_trace_lines = True
        if not self._on:
            self._on = True
            sys.settrace(self._called)

    def _untrace(self, frame: FrameType) -> None:
        """Trace a frame no more, if nothing is to be known of it."""
        if id(frame) not in self._frames and id(frame) not in self._followed:
            frame.f_trace = None
        if self._on and not self._frames and not self._followed:
            self._on = False
            sys.settrace(None)

    def unwatch(self, found: Watched) -> None:
        """Its memory is free."""
        for key, (frame, watched) in list(self._frames.items()):
            left = [each for each in watched if each.root is not found]
            if len(left) < len(watched):
                watched[:] = left
                if not watched:
                    del self._frames[key]
                    self._untrace(frame)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        """A function begins: what its caller has names for may have names here."""
        caller = self._frames.get(id(frame.f_back))
        if caller is None or not enters_program(frame):
            return None
        told: set[tuple[int, int]] = set()
        for each in list(caller[1]):
            key = (id(each.memory), id(each.root.seen))
            if each.calls and key not in told:
                told.add(key)
                later = gets(frame, each.memory, owner_of(each.memory))
                watch = self.watch(
                    frame, each.memory, reads=each.reads, seen=each.seen, calls=True, later=later,
                    region=each.region,
                )  # fmt: skip
                for found in watch:
                    found.root = each.root
        return self._line if id(frame) in self._frames else None

    def _ended(self, frame: FrameType, watched: list[Watched]) -> None:
        """A function returns, or yields: what was known by its being called is known no more."""
        watched[:] = [each for each in watched if each.root is each]
        if not watched:
            del self._frames[id(frame)]
            self._untrace(frame)

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        followed = self._followed.get(id(frame))
        if followed is not None and event != "exception":
            goes_on = followed[1](frame)  # of what the last line has made, too
            if event == "return" or not goes_on:
                del self._followed[id(frame)]
                caller = frame.f_back if event == "return" and goes_on else None
                if caller is not None and enters_program(caller):
                    self.follow(caller, followed[1])
                self._untrace(frame)
        watched = self._frames.get(id(frame))
        if watched is None:
            return self._line if id(frame) in self._followed else None
        if event == "line":
            _look_at_line(frame, uses_of(frame.f_code), watched[1])
        elif event == "return":
            self._ended(frame, watched[1])
        return self._line


def _look_at_line(frame: FrameType, uses: Uses, watched: list[Watched]) -> None:
    stored = uses.stored.get(frame.f_lineno, {})
    read = uses.read.get(frame.f_lineno, {})
    given = uses.given.get(frame.f_lineno, [])
    of_stored = uses.elements_stored.get(frame.f_lineno, {})
    of_read = uses.elements_read.get(frame.f_lineno, {})
    if not stored and not read and not given and not of_stored and not of_read:
        return
    names = {*stored, *read, *of_stored, *of_read, *(name for name, _, _ in given)}
    for each in [*watched, *_names_since(frame, watched, names)]:
        if each.is_touched(frame, stored.get(each.name, [])) or each.is_element_touched(
            frame, of_stored.get(each.name, [])
        ):
            each.seen(frame, each.name, True)
        elif each.reads and (
            each.is_touched(frame, read.get(each.name, []))
            or each.is_element_touched(frame, of_read.get(each.name, []))
            or _is_given(frame, each, given)
        ):
            each.seen(frame, each.name, False)


def _names_since(
    frame: FrameType, watched: Iterable[Watched], names: Iterable[str]
) -> Iterator[Watched]:
    """Names that a line has for watched memory, and that stood for something else before."""
    known = {(each.name, id(each.memory), id(each.seen)) for each in watched}
    told = {(id(each.memory), id(each.seen)): each for each in watched}
    for name in names:
        value = value_of(frame, name)
        if type(value) in _OTHERS and type(value) not in CONTAINERS:
            continue
        for key, each in told.items():
            if (name, *key) in known:
                continue
            base = owner_of(each.memory)
            if is_or_contains(value, each.memory, base):
                yield Watched(
                    name, value, each.memory, each.reads, each.seen, each.calls, each.region
                )


def _is_given(
    frame: FrameType, each: Watched, given: Iterable[tuple[str, ast.expr | None, str]]
) -> bool:
    """Whether a line gives it to a function that reads it."""
    for name, part, called in given:
        of_itself = called.rpartition(".")[0] == name  # a method: those of arrays are in `read`
        if name == each.name and not of_itself and each.is_read_by_call(frame, part, called):
            return True
    return False


def names_of(frame: FrameType) -> list[tuple[str, Any]]:
    """All names of a frame, also as attributes of `self`, with what they stand for."""
    names = frame.f_locals
    of_self = getattr(names.get("self"), "__dict__", {})
    return [*names.items(), *((f"self.{name}", value) for name, value in of_self.items())]


def _names_for(
    frame: FrameType, memory: Any, names: Iterable[Name], reads: bool, calls: bool
) -> Iterator[tuple[str, Any]]:
    """Those of some names that a frame has for some memory, or for an array that it is part of.

    With `calls` also names of objects that have it, if functions of the program get them. Such an
    object is no name for the memory: only the functions are looked at.
    """
    base, known = owner_of(memory), frame.f_locals
    own, shared = frame.f_code.co_varnames, frame.f_globals
    for name in names:
        value = known.get(name.first)
        if value is None and name.first not in own:
            value = shared.get(name.first)
        value = attribute_of(value, name.attribute)
        if contains(value, memory, base):
            yield name.text, value
        if type(value) in _OTHERS:
            continue
        is_memory = value is memory or is_of_base(value, base)
        if is_memory and (name.used or (reads and name.called)):
            yield name.text, value
        elif calls and name.called and (is_memory or holds(value, memory, base)):
            followed = any(is_followed(function_called(frame, each)) for each in name.called)
            if followed:
                yield name.text, value if is_memory else _NOTHING


def place_of_write(
    problem: BaseException | None, traceback: TracebackType | None
) -> TracebackType | None:
    """Where the program was when NumPy refused to write; None if that is not what happened."""
    if not isinstance(problem, ValueError) or "read-only" not in str(problem):
        return None
    last, found = traceback, None
    while traceback is not None:
        last = traceback
        if enters_program(traceback.tb_frame):
            found = traceback
        traceback = traceback.tb_next
    return found or last


def names_memory(where: TracebackType, memory: Any) -> bool:
    """Whether a line has a name for some memory, for what that is part of, or for what has it."""
    uses, line, frame = uses_of(where.tb_frame.f_code), where.tb_lineno, where.tb_frame
    names = {name.removesuffix(INTO) for name, _, _ in uses.given.get(line, ())}
    for table in (uses.stored, uses.elements_stored):
        names.update(table.get(line, ()))
    base = owner_of(memory)
    values = [value_of(frame, name) for name in names]
    return any(each is not None and is_or_contains(each, memory, base) for each in values)
