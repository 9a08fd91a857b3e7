"""Hot modules to C, by Cython, in processes that share what has been read already.

Most of Cython's work for one of our modules is to read the declarations of the others. Here that
is done once: a process reads all of them and is forked for each module, which then finds what it
needs.
The C is that of a Cython that begins anew for each module (`tests/unit/cli/test_building.py`).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Final

from ompy.cli.building.modules import dotted, hot_modules
from ompy.cli.building.processes import RefusalError
from ompy.cli.hot import SHARED

DIRECTIVES: Final = {
    "language_level": 3,
    "annotation_typing": False,
    "binding": True,
    "infer_types": True,
    # a fifth of the C: what can be pickled says how by itself (`__reduce__`)
    "auto_pickle": False,
    "emit_code_comments": False,
    "show_performance_hints": False,
}
MEMORY_VIEW: Final = "[::1]"  # Cython: as it is written in a declaration
# what is translated for nothing, once: Cython then has its templates and expressions at hand,
# where each fork would prepare them anew. No typed memoryview: those leave marks in what follows.
SAMPLE: Final = """
from collections.abc import Iterator
class Sample:
    __slots__ = ("count", "name")
    def __init__(self, count, name="", *, most=3):
        self.count = count
        self.name = name
    def first(self, values, *more, **named):
        found = [value for value in values if value is not None]
        pairs = {name: (value, 1) for name, value in named.items()}
        for place, value in enumerate(found):
            if value > self.count and not pairs.get(value):
                self.count += int(value) + len(more[1:])
        try:
            a, b = values
            found.append(f"{a!r} {b:5} {self.name}")
        except (ValueError, KeyError) as problem:
            raise TypeError("sample") from problem
        finally:
            del pairs[0]
        return found[-1], self.count // 2 % 3, a == b, values is more
    def second(self, values):
        return self.first(values, 1, name=2) or values[0:2]
    def each(self):
        yield from (value for value in range(self.count))
    def __len__(self):
        return self.count
    @property
    def twice(self):
        return self.count * 2.0 - 1
    @staticmethod
    def made(name, other: int = 0):
        with open(name) as file:
            return lambda: Sample(file.read() or other)
class Plain(ValueError):
    pass
def sample(values):
    while values:
        assert isinstance(values, list)
        yield values.pop()
"""
SAMPLE_DECLARED: Final = """
cdef class Sample:
    cdef public long long count
    cdef object name
    cpdef tuple second(self, values)
"""


class TranslationError(RefusalError):
    """Cython refuses a module; it has said why on standard error."""


class Translator:
    """Cython, which has read every declaration.

    The tree is this process's current folder from now on: Cython looks there, and the paths in the
    tracebacks of compiled modules begin there.
    """

    def __init__(self, tree: Path) -> None:
        """Read the declarations.

        Args:
            tree: the folder with what `preparing.py` wrote.

        Raises:
            ImportError: Cython is missing.
            TranslationError: it does not understand them.
        """
        from Cython.Compiler import Errors
        from Cython.Compiler.Main import Context

        os.chdir(tree)
        self._tree = tree
        Errors.reset()
        self._context: Any = Context.from_options(_options(None))
        self._with_views = set()
        for path in hot_modules(tree):
            name = dotted(tree, path)
            self._context.find_module(name, need_pxd=0)
            if MEMORY_VIEW in path.with_suffix(".pxd").read_text():
                self._with_views.add(name)
        if Errors.get_errors_count():
            raise TranslationError("the declarations of the hot modules")
        _prepare()

    def translate(self, path: Path, target: Path) -> None:
        """Translate one module. Once in a process: it changes what was read.

        Args:
            path: the source.
            target: the C file.

        Raises:
            TranslationError: Cython refuses.
        """
        from Cython.Compiler.Main import compile_single

        name = dotted(self._tree, path)
        self._forget_what_others_read(name)
        self._context.options = _options(target)
        inside = str(path.relative_to(self._tree))
        result = compile_single(inside, self._context.options, name, None, self._context)
        if result.num_errors:
            raise TranslationError(name)

    def _forget_what_others_read(self, name: str) -> None:
        """Leave the declarations that this module would have read itself.

        Those of other modules are dropped, and the marks with which their `cimport` lines noted
        that a function is used: each marked function is imported when the module is.
        """
        context = self._context
        near = _reachable(context.find_module(name, need_pxd=0))
        every = [scope for _, scope in context.pxds.values()]
        if near.isdisjoint(self._with_views):
            context.utility_pxds = {}  # Cython's declarations of typed memoryviews
        context.pxds = {
            key: read for key, read in context.pxds.items() if read[1].qualified_name in near
        }
        imported = {
            id(entry)
            for _, scope in context.pxds.values()
            for entry in scope.entries.values()
            if entry.is_cfunction and entry.scope is not scope
        }
        for scope in every:
            for entry in scope.entries.values():
                own = entry.is_cfunction and entry.scope is scope
                if own and entry.visibility != "extern" and not entry.inline_func_in_pxd:
                    entry.used = int(id(entry) in imported)


def _reachable(scope: Any) -> set[str]:
    """Names of the modules whose declarations a module needs, its own among them."""
    found: set[str] = set()
    waiting = [scope]
    while waiting:
        scope = waiting.pop()
        if scope.qualified_name not in found:
            found.add(scope.qualified_name)
            waiting += scope.cimported_modules
            waiting += [entry.as_module for entry in scope.entries.values() if entry.as_module]
    return found


def translate_shared(target: Path) -> None:
    """Write the module of Cython's own functions, which needs nothing of ours.

    Raises:
        TranslationError: Cython refuses.
    """
    from Cython.Build.SharedModule import generate_shared_module

    options = _options(None)
    options.shared_c_file_path = str(target)
    options.shared_utility_qualified_name = None
    options.module_name = SHARED
    problem, _ = generate_shared_module(options)
    if problem:
        raise TranslationError(SHARED)


def _prepare() -> None:
    """Translate the sample, with nothing of what was read."""
    from Cython.Compiler.Main import Context, compile_single

    with tempfile.TemporaryDirectory(prefix="ompy-build-") as folder:
        source = Path(folder, "sample.py")
        source.write_text(SAMPLE)
        source.with_suffix(".pxd").write_text(SAMPLE_DECLARED)
        options = _options(source.with_suffix(".c"))
        context = Context.from_options(options)
        if compile_single(str(source), options, "sample", None, context).num_errors:
            raise TranslationError("the sample")


def _options(target: Path | None) -> Any:
    from Cython.Compiler.Main import CompilationOptions

    options = CompilationOptions(
        output_file=str(target) if target else None,
        include_path=["."],
        compiler_directives=dict(DIRECTIVES),
        shared_utility_qualified_name=SHARED,
    )
    options.configure_language_defaults("py")
    return options
