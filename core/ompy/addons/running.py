"""Running a program as Python does, with an end of the whole job for an end that is none.

`python -m mpi4py` and `python -m mpi4py.futures` are this. It imports no MPI of itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

INTERRUPTED: Final = 130  # 128 plus SIGINT, as shells have it


def run_command_line(args: Sequence[str] | None = None) -> None:
    """Run a program: `FILE`, `-m MODULE`, `-c CODE` or `-` for the standard input; then arguments.

    Args:
        args: the command line; that of this process, without its first word, if there is none.
    """
    import runpy

    sys.argv[:] = sys.argv[1:] if args is None else args
    first = sys.argv[0]
    if first == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        _run_text(sys.argv.pop(1), "<string>")
    elif first == "-":
        _run_text(sys.stdin.read(), "<stdin>")
    else:
        if not sys.flags.safe_path:
            sys.path[0] = os.path.realpath(os.path.dirname(first))
        runpy.run_path(first, run_name="__main__")


def _run_text(text: str, name: str) -> None:
    """Run a program that is in no file, as the main module."""
    from types import ModuleType

    main = ModuleType("__main__")
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    if not sys.flags.safe_path:
        sys.path[0] = ""
    try:
        exec(compile(text, name, "exec", dont_inherit=True), main.__dict__)  # noqa: S102
    finally:
        sys.modules["__main__"] = before


def set_abort_status(status: Any) -> None:
    """Have the end of the interpreter end the whole job, if MPI is in use.

    Args:
        status: the exit code, or the exception that ends the program; what is no success counts.
    """
    if isinstance(status, SystemExit):
        status = status.code
    elif isinstance(status, KeyboardInterrupt):
        status = INTERRUPTED
    code = status if isinstance(status, int) else int(status is not None)
    module = sys.modules.get("ompy.MPI")
    if code and module is not None and module.Is_initialized() and not module.Is_finalized():
        module._set_abort_status(code)


def run_or_abort(program: Callable[[], None]) -> None:
    """Run a program; what it raises ends the whole job.

    Args:
        program: called without arguments.
    """
    try:
        program()
    except (SystemExit, KeyboardInterrupt) as stop:
        set_abort_status(stop)
        raise
    except BaseException:
        set_abort_status(1)
        raise
