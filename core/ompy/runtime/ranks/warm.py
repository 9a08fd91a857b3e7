"""Which programs a rank may run in a fork of its agent, in place of a new interpreter.

An agent that has imported what every rank needs is warm: a fork of it begins where a new
interpreter would be after some hundred milliseconds. Here is decided whether the program could
tell the two apart in what matters; if in doubt it is executed. `runtime/ranks/forked.py` then makes
of the fork what the interpreter would have been. README.md of this folder has the rules.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from ompy.frameworks.job import App

RANK_MODULES: Final = "ompy.mpi.processes.preload"  # an upper floor, so by name
# variables that an interpreter, or what it imports before the program, looks at when it starts
_AT_START: Final = ("PYTHON", "LC_", "LD_", "MALLOC_", "GLIBC_", "COV", "MPI4PY_")
_AT_START_EXACTLY: Final = frozenset({"LANG", "LANGUAGE", "TZ", "HOME", "OMPY_PURE"})
_ARCHIVE: Final = b"PK"  # begins a zip file
SAFE_PATH: Final = "-P"  # option of the interpreter: the program's folder is not imported from


class ExecInstead(Exception):
    """Why a program is not run in a fork of the agent."""


class Program(NamedTuple):
    """A command line that is `python ...` as a fork may run it.

    Attributes:
        executable: what `sys.executable` would be.
        kind: `-c`, `-m` or, for a file, nothing.
        what: the code, the module, or the file.
        argv: the whole command line.
        arguments: what of it is the program's own.
        import_path: `sys.path` but for the first entry, which is the program's.
    """

    executable: str
    kind: str
    what: str
    argv: tuple[str, ...]
    arguments: tuple[str, ...]
    import_path: tuple[str, ...]


def looks_like_python(words: Sequence[str]) -> bool:
    """Whether a command line seems to hold a program that a warm agent is of use for."""
    for word, following in pairwise(words):
        if os.path.basename(word).startswith("python"):
            return following in {"-c", "-m", SAFE_PATH} or not following.startswith("-")
    return False


def may_be_warm() -> str:
    """Why a fork of this process is no good start for a program; empty if it is one.

    Asked of a process that has imported next to nothing.
    """
    options = _without_safe_path(sys.orig_argv[1:])[:1]
    if options and options[0].startswith("-") and options[0] not in {"-c", "-m"}:
        return f"this interpreter was started with {options[0]}"
    if sys.flags.inspect or os.environ.get("PYTHONINSPECT"):
        return "PYTHONINSPECT is set"
    if None in (sys.stdin, sys.stdout, sys.stderr):
        return "a standard stream is closed"
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return "this interpreter is traced"
    for name in ("sitecustomize", "usercustomize"):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and os.path.dirname(file) != os.path.dirname(os.__file__):
            return f"there is a {name}, which may do something else in each rank"
    return _threads()


def _threads() -> str:
    """A fork has only the thread that forked; what the others held stays held."""
    try:
        return "" if len(os.listdir("/proc/self/task")) == 1 else "this process has threads"
    except OSError:
        return "there is no /proc"


class WarmStart:
    """What an agent knows of its own start, to compare a rank's with. Make it first of all.

    Attributes:
        problem: why no program is run in a fork at all; empty if one may be.
    """

    def __init__(self) -> None:
        self.problem = may_be_warm()
        self._environment = dict(os.environ)
        self._path = list(sys.path) if sys.flags.safe_path else sys.path[1:]

    def warm_up(self) -> None:
        """Import what ranks need; a failure leaves the agent cold, ranks will tell of it."""
        if self.problem:
            return
        import gc

        gc.disable()  # there is nothing to collect, and each look for it costs
        try:
            importlib.import_module(RANK_MODULES)
            from ompy.runtime.ranks.forked import keep_modules

            keep_modules()
        except Exception as problem:
            self.problem = f"{RANK_MODULES} cannot be imported: {problem}"
        finally:
            gc.freeze()
            gc.enable()

    def program(self, app: App, environment: Mapping[str, str]) -> Program:
        """What a fork has to run for one program of the job.

        Args:
            app: the program.
            environment: of its rank.

        Raises:
            ExecInstead: it is executed; the text says why.
        """
        problem = self.problem or _threads()
        if problem:
            raise ExecInstead(problem)
        executable = _same_interpreter(app.argv[0], environment, app.directory)
        words = _without_safe_path(app.argv[1:])
        kind, what = _chosen(words)
        safe = len(words) < len(app.argv) - 1 or bool(environment.get("PYTHONSAFEPATH"))
        if safe is not sys.flags.safe_path:
            raise ExecInstead(f"{SAFE_PATH} is another in the ranks")
        import_path = self._import_path(environment, app.directory)
        self._compare(environment)
        directory = app.directory or os.getcwd()
        if not kind:
            _check_source(os.path.join(directory, what))
            directory = os.path.dirname(os.path.realpath(os.path.join(directory, what)))
        if not sys.flags.safe_path:
            _refuse_shadows(directory)
        arguments = tuple(words[2 if kind else 1 :])
        return Program(executable, kind, what, app.argv, arguments, tuple(import_path))

    def _compare(self, environment: Mapping[str, str]) -> None:
        """The rank's interpreter would start as this one did."""
        own = self._environment
        for name in own.keys() | environment.keys():
            counts = name in _AT_START_EXACTLY or name.startswith(_AT_START)
            if counts and name != "PYTHONPATH" and own.get(name) != environment.get(name):
                raise ExecInstead(f"{name} is another in the ranks")

    def _import_path(self, environment: Mapping[str, str], directory: str) -> Iterable[str]:
        """`sys.path` of the rank; its PYTHONPATH may have one entry more than ours, the first."""
        own = self._environment.get("PYTHONPATH", "")
        parts = own.split(os.pathsep) if own else []
        if directory and not all(os.path.isabs(part) for part in parts):
            raise ExecInstead("PYTHONPATH depends on the working directory")
        wanted = environment.get("PYTHONPATH", "")
        if wanted == own:
            return self._path
        first, *rest = wanted.split(os.pathsep)
        if not os.path.isabs(first) or [part for part in parts if part != first] != rest:
            raise ExecInstead("PYTHONPATH is another in the ranks")
        return [first, *(entry for entry in self._path if entry != first)]


def _same_interpreter(name: str, environment: Mapping[str, str], directory: str) -> str:
    """The path a rank would find its interpreter by, which has to be this one."""
    if "/" in name:
        path = os.path.join(directory or os.getcwd(), name)
    else:
        folders = environment.get("PATH", os.defpath).split(os.pathsep)
        files = (os.path.join(directory or os.getcwd(), folder, name) for folder in folders)
        path = next((file for file in files if os.access(file, os.X_OK)), "")
    try:
        same = os.path.samefile(path, sys.executable) and os.path.samefile(
            os.path.dirname(path), os.path.dirname(sys.executable)
        )
    except OSError:
        same = False
    if not same:
        raise ExecInstead(f"{name} is not the interpreter ompy-run runs in")
    return os.path.normpath(path)


def _without_safe_path(words: Sequence[str]) -> Sequence[str]:
    return words[1:] if words[:1] in ([SAFE_PATH], (SAFE_PATH,)) else words


def _chosen(words: Sequence[str]) -> tuple[str, str]:
    """Kind and object of a command line without options of the interpreter."""
    if words and not words[0].startswith("-"):
        return "", words[0]
    if len(words) > 1 and words[0] in {"-c", "-m"}:
        return words[0], words[1]
    raise ExecInstead("the interpreter has options, or reads its program from its input")


def _check_source(file: str) -> None:
    """A file of source text; what else there is the interpreter deals with, errors too."""
    try:
        with open(file, "rb") as source:
            text = source.read()
    except OSError as problem:
        raise ExecInstead(f"{file}: {problem.strerror}") from None
    if file.endswith(".pyc") or text.startswith(_ARCHIVE) or b"\0" in text:
        raise ExecInstead(f"{file} is no source text")


def _refuse_shadows(directory: str) -> None:
    """What the program would import from its own directory must not be here from elsewhere."""
    loaded = {name.partition(".")[0] for name in sys.modules}
    try:
        beside = {entry.partition(".")[0] for entry in os.listdir(directory)}
    except OSError as problem:
        raise ExecInstead(f"{directory}: {problem.strerror}") from None
    hidden = sorted(loaded & beside)
    if hidden:
        raise ExecInstead(f"{directory} has a {hidden[0]} of its own")


def program_to_fork(
    warm: WarmStart | None, app: App, environment: Mapping[str, str], start: Mapping[str, Any]
) -> Program | None:
    """What a fork of this agent is to run, or None: it is to execute its program."""
    try:
        return warm.program(app, environment) if warm is not None and start["fork_ranks"] else None
    except ExecInstead:
        return None
