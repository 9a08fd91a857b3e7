"""A fork of the agent becomes what a new interpreter would be, and runs the rank's program.

Everything CPython does between its start and the first line of a program is done again here, in
the order of `Modules/main.c`, as far as a program can see it.
"""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
from collections.abc import Mapping
from types import ModuleType, TracebackType
from typing import Any, Final

from ompy.runtime.ranks import ending
from ompy.runtime.ranks.process_title import show_as
from ompy.runtime.ranks.warm import Program

STREAMS: Final = ("stdin", "stdout", "stderr")
# modules the interpreter itself asks for while it takes the others apart
_NEEDED_AT_END: Final = frozenset(
    {"__main__", "builtins", "sys", "warnings", "linecache", "traceback", "threading", "weakref"}
)

# Modules the agent has imported, and this list itself: nothing in it ever ends. Taking them apart
# at the end of a rank would copy all the memory that it shares with the agent.
_kept: Final[list[object]] = []
_kept.append(_kept)
_kept_names: Final[list[str]] = []


class BecomeRank(BaseException):
    """Raised in a fork that the agent's loop has made, to leave it.

    Attributes:
        rank: what to run then.
    """

    def __init__(self, rank: ForkedRank, agent: object) -> None:
        """Have all that the agent was outlive the rank: its descriptors are closed by number."""
        super().__init__("a fork of the agent becomes a rank")
        self.rank = rank
        _kept.append(agent)
        keep_modules()


class ForkedRank:
    """A rank's process before its program begins: the agent in it is to be unwound first."""

    def __init__(self, program: Program, environment: Mapping[str, str], blocked: set[int]) -> None:
        """Remember what to run.

        Args:
            program: what.
            environment: all its variables.
            blocked: signals that are to be blocked in it.
        """
        self._program = program
        self._environment = environment
        self._blocked = blocked

    def run(self) -> None:
        """Run it, with as few frames below it as can be.

        Returns at its end; what it raises goes on to the interpreter, which does what it does at
        the end of any program. A traceback begins with the program's own first line.
        """
        _close_what_exec_closes()
        self._take_environment()
        self._restore_interpreter()
        _open_standard_streams()
        atexit.register(_spare_what_is_kept)  # the first to be registered is called last
        _restore_signals(self._blocked)
        program, kind = self._program, self._program.kind
        main = _new_main(program)
        try:
            if kind == "-m":
                import runpy

                runpy._run_module_as_main(program.what)  # type: ignore[attr-defined] # noqa: SLF001 - what `python -m` calls
            else:
                exec(_compiled(program), main.__dict__)  # noqa: S102 - running it is the task
        except SystemExit as end:
            ending.note(end)
            raise
        except BaseException as problem:
            _hide(problem.__traceback__)
            raise
        ending.note(None)

    def _take_environment(self) -> None:
        for name in os.environ.keys() - self._environment.keys():
            del os.environ[name]
        for name, value in self._environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value

    def _restore_interpreter(self) -> None:
        program = self._program
        first = {"-c": "", "-m": os.getcwd()}.get(program.kind)
        if first is None:
            first = os.path.dirname(os.path.realpath(program.what))
        sys.path[:] = [*([] if sys.flags.safe_path else [first]), *program.import_path]
        sys.argv = [program.kind or program.what, *program.arguments]
        sys.orig_argv = list(program.argv)
        base = base_executable(program.executable)
        sys._base_executable = base  # type: ignore[attr-defined] # noqa: SLF001 - as its start sets it
        sys.executable = program.executable
        show_as(program.argv)


def base_executable(executable: str) -> str:
    """What `sys._base_executable` would be, had this interpreter been started by another name.

    A link is followed to its end, whatever its name. Where nothing is a link, as in an environment
    made with `--copies`, it is the file of the same name in the folder of the interpreter that the
    environment was made from.

    Args:
        executable: another name of `sys.executable`, in its folder.
    """
    base: str = getattr(sys, "_base_executable", "")
    is_followed = os.path.islink(sys.executable) and os.path.realpath(sys.executable) == base
    if is_followed or os.path.basename(base) != os.path.basename(sys.executable):
        return base
    return os.path.join(os.path.dirname(base), os.path.basename(executable))


def keep_modules() -> None:
    """Let the modules that an agent has imported outlive its ranks.

    Called in the agent, before its objects are frozen; and in a fork of its loop.
    """
    new = sys.modules.keys() - _NEEDED_AT_END - set(_kept_names)
    _kept_names.extend(new)
    _kept.extend(sys.modules[name] for name in new)


def _spare_what_is_kept() -> None:
    """Leave the modules of the agent out when the interpreter takes modules apart.

    Those of the program are not among them: what these hold is finalised as ever.
    """
    for name in _kept_names:
        sys.modules.pop(name, None)


def _close_what_exec_closes() -> None:
    """The agent's descriptors. What the launcher's caller let us inherit, a program inherits."""
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            if number > 2 and not os.get_inheritable(number):
                os.close(number)
        except OSError:  # the one the directory was read by
            pass


def _open_standard_streams() -> None:
    """New ones over the rank's pipes, as the interpreter makes them; the old ones had nothing."""
    for number, name in enumerate(STREAMS):
        setattr(sys, name, _stream(number, name, getattr(sys, name)))
        setattr(sys, f"__{name}__", getattr(sys, name))


def _stream(number: int, name: str, like: Any) -> Any:
    through = like.write_through  # PYTHONUNBUFFERED
    unbuffered = through and number != 0
    mode = "w" if number else "r"
    file: Any = io.open(number, mode + "b", 0 if unbuffered else -1, closefd=False)  # noqa: UP020, SIM115 - as CPython calls it; it stays open
    raw = file if unbuffered else file.raw
    raw.name = f"<{name}>"
    made = io.TextIOWrapper(
        file,
        encoding=like.encoding,
        errors=like.errors,
        newline="\n",
        line_buffering=not through and (number == 2 or raw.isatty()),
        write_through=through,
    )
    made.mode = mode  # type: ignore[misc]
    return made


def _restore_signals(blocked: set[int]) -> None:
    """What a new interpreter has: defaults, and KeyboardInterrupt unless SIGINT is ignored."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _new_main(program: Program) -> ModuleType:
    """The module `__main__`, with what it has when the first line runs."""
    main = ModuleType("__main__")
    import builtins
    from importlib.machinery import BuiltinImporter, SourceFileLoader

    main.__loader__ = BuiltinImporter
    main.__dict__.update(__builtins__=builtins, __annotations__={})
    if not program.kind:
        file = _absolute(program.what)
        main.__loader__ = SourceFileLoader("__main__", file)
        main.__dict__.update(__file__=file, __cached__=None)
    # CPython goes on with the names of the script that it has begun, at its end, too, and does not
    # hold them itself
    _kept.append(sys.modules["__main__"])
    sys.modules["__main__"] = main
    return main


def _absolute(file: str) -> str:
    """As CPython names the file it was told: from the root, and otherwise as written."""
    return file if os.path.isabs(file) else f"{os.getcwd()}/{file.removeprefix('./')}"


def _compiled(program: Program) -> Any:
    if program.kind:
        return compile(program.what, "<string>", "exec", dont_inherit=True)
    file = _absolute(program.what)
    with io.open_code(file) as source:
        return compile(source.read(), file, "exec", dont_inherit=True)


def _hide(traceback: TracebackType | None) -> None:
    """Have the traceback of what ends the program begin with the program.

    The frames below it are in it by the time the interpreter calls its hook; ours, for that one
    call, takes them out and gives the place back to what was there.
    """
    hook = getattr(sys, "excepthook", None)
    own = traceback
    while own is not None and own.tb_frame.f_globals is globals():
        own = own.tb_next

    def without_ours(
        kind: type[BaseException], value: BaseException, _all: TracebackType | None
    ) -> None:
        sys.last_traceback = own
        if hook is None:  # the program has deleted it: what the interpreter does then
            del sys.excepthook
            sys.stderr.write("sys.excepthook is missing\n")
            sys.__excepthook__(kind, value.with_traceback(own), own)
        else:
            sys.excepthook = hook
            hook(kind, value.with_traceback(own), own)

    sys.excepthook = without_ours
