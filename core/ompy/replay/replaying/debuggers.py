"""A debugger in a rank that runs alone: Python's own, or one that an editor attaches to."""

from __future__ import annotations

import importlib
import os
import pdb
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, Final, TypeVar

from ompy import outputs
from ompy.check.record import is_ours, program_frame
from ompy.replay.replaying.outcomes import leave_now

T = TypeVar("T")
# keeps debugpy from a warning of modules of Python's own in which it may miss breakpoints
_QUIET: Final = "PYDEVD_DISABLE_FILE_VALIDATION"
_NEVER: Final = -1  # `bdb`: the line to stop at of who continues
OURS: Final = ("ompy", "ompy.*", "ompy_components", "ompy_components.*", "mpi4py", "mpi4py.*")


class DebuggerMissing(Exception):
    """It is not installed; the text says what to do."""


class NoDebugger:
    """None was asked for: the rank runs, and stops for good where it was told to."""

    def run_program(self, program: Callable[[], T]) -> T:
        """Run the program."""
        return program()

    def stop_in_frame(self, frame: FrameType | None) -> bool:
        """The rank is where the user wants to look. Returns whether it is to go on."""
        del frame
        return False

    def failed(self, traceback: TracebackType | None) -> None:
        """The program has ended with an exception."""


class Pdb(NoDebugger):
    """`pdb`, from the first line of the program on, or from where the rank stops."""

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once

    def run_program(self, program: Callable[[], T]) -> T:
        """Stop in the first line of the program, if nothing later was named."""
        if not self._at_once:
            return program()
        result: Any = _FromFirstLine(skip=OURS).runcall(program)
        return result  # type: ignore[no-any-return]

    def stop_in_frame(self, frame: FrameType | None) -> bool:
        """Ask the user in the line that makes the call."""
        if frame is not None:
            _AtCall(skip=OURS).ask_in(frame)
        return True

    def failed(self, traceback: TracebackType | None) -> None:
        """Show where."""
        if traceback is not None:
            pdb.post_mortem(traceback)


class WorldPdb:
    """`pdb` in one rank of a virtual world.

    Attributes:
        rank: which.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self._pdb = Pdb(at_once=True)

    def run_program(self, program: Callable[[], T]) -> T:
        """From the first line of the program on."""
        return self._pdb.run_program(program)

    def failed(self) -> None:
        """Show where."""
        self._pdb.failed(getattr(sys, "last_traceback", None))

    def stop_in_call(self) -> None:
        """Ask in the line of the program that waits."""
        frame = program_frame(sys._getframe())  # noqa: SLF001 - its only name
        program = vars(sys.modules["__main__"])
        if any(outer.f_globals is program for outer in _frames_of_program(frame)):
            self._pdb.stop_in_frame(frame)
        else:
            outputs.tell(f"ompy sim: the program of rank {self.rank} has ended\n", "program ended")

    def world_ends(self, text: str) -> None:
        """Say why, before the rank is looked at for the last time."""
        if text:
            first = text.partition("\n")[0]
            outputs.tell(f"ompy sim: the world ends: {first}\n", "world ends")


class _Leaving(pdb.Pdb):
    """To quit is to end the process: what is left of the program is of no interest."""

    def cmdloop(self, intro: Any = None) -> None:
        """Ask; Ctrl-C at the prompt gives a new prompt, and does not end what is debugged."""
        try:
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
        except ValueError:  # another thread than the first: Ctrl-C is not for it
            super().cmdloop(intro)
            return
        try:
            super().cmdloop(intro)
        finally:
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and not pdb's own
                signal.signal(signal.SIGINT, before)

    def set_quit(self) -> None:
        """The user has seen enough."""
        leave_now(0)

    def do_run(self, arg: str) -> None:
        """Say that only the command begins again."""
        self.message("the program begins again with the command that began it; q ends this one")

    do_restart = do_run


class _AtCall(_Leaving):
    """Asks in a line of the program that has made a call, which is not over."""

    def ask_in(self, frame: FrameType) -> None:
        """Ask, and then do what was asked for: nothing between this call and the line is traced."""
        self.reset()
        for outer in _frames_of_program(frame):
            outer.f_trace = self.trace_dispatch
            self.botframe = outer
        self.interaction(frame, None)
        if self.breaks or self.stoplineno != _NEVER:
            sys.settrace(self.trace_dispatch)


def _frames_of_program(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those around it, as far as they are the program's."""
    while frame is not None and not is_ours(frame):
        yield frame
        frame = frame.f_back


class _FromFirstLine(_Leaving):
    """Does not ask before the program's first line, nor behind its last."""

    _begun = False
    _module: FrameType | None = None  # the program's own lines, outside of its functions

    def user_line(self, frame: FrameType) -> None:
        """A line is about to be run."""
        if not self._begun:
            if frame.f_globals.get("__name__") != "__main__" or is_ours(frame):
                return
            self._begun, self._module = True, frame
        super().user_line(frame)

    def user_call(self, frame: FrameType, argument_list: None) -> None:
        """A function is called."""
        if self._begun:
            super().user_call(frame, argument_list)

    def user_return(self, frame: FrameType, return_value: Any) -> None:
        """A function is about to return."""
        if self._begun:
            super().user_return(frame, return_value)
        if frame is self._module:
            self._begun, self._module = False, None
            self.set_continue()
            sys.settrace(None)

    def user_exception(self, frame: FrameType, exc_info: Any) -> None:
        """Something was raised."""
        if self._begun:
            super().user_exception(frame, exc_info)


class Debugpy(NoDebugger):
    """`debugpy`: the rank waits until an editor is attached."""

    def __init__(self, port: int, *, at_once: bool) -> None:
        """Listen on loopback.

        Raises:
            DebuggerMissing: it is not installed.
        """
        try:
            self._debugpy = importlib.import_module("debugpy")
        except ImportError:
            raise DebuggerMissing("debugpy is not installed: pip install debugpy") from None
        self._port = port
        self._at_once = at_once

    def run_program(self, program: Callable[[], T]) -> T:
        """Wait for the editor, then run."""
        given = os.environ.get(_QUIET)
        os.environ[_QUIET] = given or "1"
        host, port = self._debugpy.listen(("127.0.0.1", self._port))
        if given is None:
            del os.environ[_QUIET]  # the program sees its own environment
        print(f"debugpy listens at {host}:{port}; attach to go on", file=sys.stderr, flush=True)
        self._debugpy.wait_for_client()
        return program()

    def stop_in_frame(self, frame: FrameType | None) -> bool:
        """Stop in the next line."""
        del frame
        self._debugpy.breakpoint()
        return True
