"""Which function of the program a line calls, so that memory can be watched there too.

What a function of Python does with an array is told by its own lines. What one written in C does is
not: it counts as reading all that it gets. Functions of libraries are not looked into.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Final

from ompy.check.program_text import body_of, cached_by_code, names_in_functions
from ompy.check.record import OURS, is_ours

ATTRIBUTES: Final = 64  # of an object that are looked at; arbitrary: classes have fewer
DEPTH: Final = 3  # of attributes of attributes; arbitrary: a solver has a grid has ghost cells
_HEAP_TYPE: Final = 1 << 9  # source: CPython, Py_TPFLAGS_HEAPTYPE: a class made by `class`
ELEMENTS: Final = 64  # of a list, likewise; arbitrary: one for each neighbour or so
FILES: Final = 64  # of the program; arbitrary: more are read by nobody
CONTAINERS: Final = (list, tuple, dict, deque)
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_STANDARD: Final = os.path.dirname(os.__file__) + os.sep


def variable(frame: FrameType, name: str) -> Any:
    """What a frame has under a name of its own or of its module; None for nothing."""
    known = frame.f_locals
    if name in known:
        return known[name]
    return None if name in frame.f_code.co_varnames else frame.f_globals.get(name)


def value_of(frame: FrameType, name: str) -> Any:
    """What a frame has under a name, which may be that of an attribute; None for nothing."""
    first, _, path = name.partition(".")
    return attribute_of(variable(frame, first), path)


def attribute_of(value: Any, path: str) -> Any:
    """An attribute like `a` or `a.b`; None for nothing. No path is the value itself."""
    for name in path.split(".") if path else ():
        # not getattr: a property would run
        value = getattr(value, "__dict__", {}).get(name)
    return value


def function_called(frame: FrameType, called: str) -> FunctionType | None:
    """The function of Python behind a name like `a` or `a.b.c`; None for another, or none."""
    path, _, attribute = called.rpartition(".")
    if not path:
        path, attribute = attribute, ""
    value = value_of(frame, path) if path else None
    if attribute and value is not None:
        # not getattr: a property would run
        own = getattr(value, "__dict__", {}).get(attribute)
        value = own if own is not None else _of_class(type(value), attribute)
    if isinstance(value, (classmethod, staticmethod, MethodType)):
        value = value.__func__
    if isinstance(value, type):
        value = _of_class(value, "__init__")
    return value if isinstance(value, FunctionType) else None


def _of_class(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def is_followed(function: FunctionType | None) -> bool:
    """Whether its lines are looked at when it is called."""
    if function is None or not is_of_program(function.__code__):
        return False
    inner = getattr(function, "__wrapped__", None)
    # what a wrapper of the program hands on is looked at there
    return inner is None or (isinstance(inner, FunctionType) and is_followed(inner))


@cached_by_code
def is_of_program(code: CodeType) -> bool:
    """Whether a code is of the program itself, and its source is there."""
    return not is_installed(code.co_filename) and bool(body_of(code))


def program_files() -> list[str]:
    """The files of the program's own modules that were imported, as far as their source is there.

    Only those beside the program's first module, or in folders below it, or below the one where it
    runs: where there are many others, a library lies about.
    """
    main = sys.modules.get("__main__")
    folders = {os.path.dirname(os.path.abspath(getattr(main, "__file__", None) or "."))}
    folders.add(os.getcwd())
    found = []
    for title, module in list(sys.modules.items()):
        name = getattr(module, "__file__", None)
        ours = title.partition(".")[0] in OURS
        if isinstance(name, str) and name.endswith(".py") and not ours:
            path = os.path.abspath(name)
            below = any(path.startswith(os.path.join(folder, "")) for folder in folders)
            if below and not is_installed(path):
                found.append(path)
    return sorted(found)[:FILES]


def is_installed(name: str) -> bool:
    """Whether a file is of the standard library, or of a package that was installed."""
    return name.startswith(_STANDARD) or any(part in name for part in _INSTALLED)


def enters_program(frame: FrameType) -> bool:
    """Whether a frame that begins is a function of the program."""
    return not is_ours(frame) and is_of_program(frame.f_code)


def holds(value: Any, memory: Any, base: Any, depth: int = DEPTH) -> bool:
    """Whether an object has some memory, or the array that it is part of, as an attribute.

    A list of arrays may be the attribute, too, or another such object.
    """
    attributes = getattr(value, "__dict__", None)
    if not isinstance(attributes, dict) or len(attributes) > ATTRIBUTES:
        return False
    return any(
        is_or_contains(each, memory, base)
        or (depth > 1 and _is_of_program_class(each) and holds(each, memory, base, depth - 1))
        for each in list(attributes.values())
    )


def _is_of_program_class(value: Any) -> bool:
    kind = type(value)
    return kind.__flags__ & _HEAP_TYPE != 0 and kind.__module__.partition(".")[0] not in OURS


def gets(frame: FrameType, memory: Any, base: Any) -> bool:
    """Whether a function that begins was given an object that has some memory.

    What comes as `*arguments` and `**named` may be the memory itself: it has no name there.
    """
    code, known = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    if any(holds(known.get(name), memory, base) for name in code.co_varnames[:count]):
        return True
    rest = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return any(
        contains(given, memory, base) or any(holds(each, memory, base) for each in elements(given))
        for given in map(known.get, code.co_varnames[count : count + rest])
    )


def contains(value: Any, memory: Any, base: Any) -> bool:
    """Whether a list, a tuple or a dict has some memory, or the array that it is part of."""
    return any(each is memory or is_of_base(each, base) for each in elements(value))


def is_or_contains(value: Any, memory: Any, base: Any) -> bool:
    """Whether an object is some memory, or part of the same array, or contains that."""
    return value is memory or is_of_base(value, base) or contains(value, memory, base)


def elements(value: Any) -> list[Any]:
    """Those of a list, a tuple, a deque or a dict; none of anything else."""
    if type(value) not in CONTAINERS or len(value) > ELEMENTS:
        return []
    return list(value.values()) if type(value) is dict else list(value)


def is_shared(frame: FrameType, memory: Any, base: Any) -> bool:
    """Whether other functions may have a name for some memory: the module's, or a closure's."""
    inner, known = frame.f_code.co_cellvars, frame.f_locals
    shared = names_in_functions(frame.f_code.co_filename)
    values = [known.get(name) for name in inner]
    values += [frame.f_globals.get(name) for name in shared]
    return any(each is not None and is_or_contains(each, memory, base) for each in values)


def owner_of(memory: Any) -> Any:
    """What has the memory of an array or a view: that of which it is a part, or itself."""
    base = memory.obj if type(memory) is memoryview else getattr(memory, "base", None)
    if type(base) is memoryview:
        base = base.obj
    return memory if base is None else base


def is_of_base(value: Any, base: Any) -> bool:
    """Whether an array or a view is the one that a part was taken of, or another part of that."""
    if value is base:
        return True
    is_view = type(value) is memoryview or hasattr(value, "dtype")
    return is_view and owner_of(value) is base
