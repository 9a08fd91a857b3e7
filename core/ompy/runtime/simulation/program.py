"""The program of a simulated rank: run as the interpreter would, in a fork of the scheduler."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path
from subprocess import _args_from_interpreter_flags  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

import ompy
from ompy.frameworks.job import App
from ompy.runtime.diagnosis.uncaught import cut_at_program, exit_code_of
from ompy.runtime.ranks import ending


class _Program(NamedTuple):
    """What is to be run.

    Attributes:
        kind: empty for a file, or the interpreter's option.
        what: path, module or text.
        arguments: what `sys.argv` has behind the first.
    """

    kind: str
    what: str
    arguments: list[str]


def _program_of(app: App) -> _Program:
    """A file, as `ompy sim` has it; or what the interpreter is told, as `Spawn` has it.

    Raises:
        ValueError: it is another program, or the interpreter has options that this one has not.
    """
    first, *words = app.argv
    if not _is_interpreter(first):
        if first.endswith(".py"):
            return _Program("", first, words)
        raise ValueError(f"a simulated world runs Python's programs only, not {first}")
    own = _args_from_interpreter_flags()  # as pools of workers start theirs: these hold here, too
    if own and words[: len(own)] == own:
        words = words[len(own) :]
    if len(words) > 1 and words[0] in {"-c", "-m"}:
        return _Program(words[0], words[1], words[2:])
    if words and not words[0].startswith("-"):
        return _Program("", words[0], words[1:])
    raise ValueError(
        "in a simulated world the interpreter has no options but -c, -m and those of ompy sim's own"
    )


def _is_interpreter(name: str) -> bool:
    return os.path.basename(name).startswith("python") or name == sys.executable


def problem_of(app: App) -> str:
    """Why a program cannot be run in a simulated world; empty if it can."""
    try:
        program = _program_of(app)
    except ValueError as problem:
        return str(problem)
    if app.directory and not os.path.isdir(app.directory):
        return f"there is no directory {app.directory}"
    if not program.kind and not os.path.isfile(os.path.join(app.directory, program.what)):
        return f"there is no program {program.what}"
    return ""


def execute(app: App, *, mpi4py: bool) -> tuple[int, str]:
    """Run the program as the interpreter would.

    Args:
        app: which.
        mpi4py: put the drop-in package in front.

    Returns:
        Its exit code, and what it raised.
    """
    if app.directory:
        os.chdir(app.directory)
    program = _program_of(app)
    sys.argv = [program.kind or program.what, *program.arguments]
    own = 0 if sys.flags.safe_path else 1
    folders = {"-c": "", "-m": os.getcwd()}
    folder = folders.get(program.kind, str(Path(program.what).resolve().parent))
    sys.path[:own] = [folder] * own
    if mpi4py:
        sys.path.insert(own, str(Path(ompy.__file__).parent / "dropin"))
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # it is closed
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    code, why = 0, ""
    try:
        _run(program)
        ending.note(None)
    except SystemExit as end:
        ending.note(end)
        code = _exit_code(end)
    except BaseException as problem:
        _tell(problem)
        code, why = exit_code_of(problem), f"{type(problem).__name__}: {problem}".partition("\n")[0]
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - as the interpreter's own end has it
    atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing does in its forks
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return code, why


def _run(program: _Program) -> None:
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    if program.kind == "-m":
        import runpy

        runpy._run_module_as_main(program.what)  # type: ignore[attr-defined]  # noqa: SLF001 - what `python -m` calls
        return
    source: Any = program.what
    name = "<string>"
    if not program.kind:
        name = module.__file__ = program.what
        source = Path(name).read_bytes()
    exec(compile(source, name, "exec"), module.__dict__)  # noqa: S102 - the user's own


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return (end.code or 0) % 256
    print(end.code, file=sys.stderr)
    return 1


def _tell(problem: BaseException) -> None:
    """As the interpreter does, without our own frames."""
    below = problem.__traceback__
    while below is not None and below.tb_frame.f_code in (execute.__code__, _run.__code__):
        below = below.tb_next
    problem.__traceback__ = below
    sys.last_type, sys.last_value, sys.last_traceback = type(problem), problem, below
    with cut_at_program(problem, below):
        sys.excepthook(type(problem), problem, below)
