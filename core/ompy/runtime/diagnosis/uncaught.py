"""An uncaught exception on one rank ends the whole job, with its traceback complete."""

from __future__ import annotations

import atexit
import os
import stat
import sys
import threading
from contextlib import contextmanager
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Final

from ompy.data.errors import ERR_INTERN, MPIError, waits_for_ended
from ompy.frameworks.call_site import program_frame
from ompy.mca.parameters.base_parameters import DEADLOCK_DETECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from ompy.runtime.ranks.client import AgentClient
    from ompy.runtime.ranks.process import RankProcess

UNCAUGHT: Final = 1  # what Python itself exits with after an uncaught exception
_TEXT_LIMIT: Final = 500  # characters; arbitrary: the traceback has the rest
_HARMLESS: Final = (KeyboardInterrupt, SystemExit)
# s; arbitrary: an error of MPI may be what another rank's end looks like from here, and that end is
# to be heard of first; to be reaped takes it some milliseconds, on a busy machine tens
_CAUSE_FIRST: Final = 0.2


_guarded: Final[set[int]] = set()  # processes, by id: a forked child is another


def end_job_on_exception(process: RankProcess) -> None:
    """Guard a launched rank, once: what is uncaught ends the job, lines are written when said.

    Call it after registering exit hooks that may wait for other ranks.
    """
    from ompy.runtime.ranks.client import AgentClient

    client = process.context.wireup
    if not isinstance(client, AgentClient) or os.getpid() in _guarded:
        return
    from ompy.runtime.diagnosis.rank_report import tell_of_error

    _guarded.add(os.getpid())
    line_buffer_output()
    install_excepthook(client, partial(tell_of_error, process))
    _watch_threads(process, client)


def _watch_threads(process: RankProcess, client: AgentClient) -> None:
    """An exception that ends a thread ends the job, too, where all the others wait for that one."""
    previous = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        previous(args)
        value = args.exc_value
        wanted = process.registry.value(DEADLOCK_DETECTION)
        if value is None or isinstance(value, _HARMLESS) or not wanted or process.finalized:
            return
        from ompy.runtime.diagnosis.waiting_threads import when_nobody_is_left

        when_nobody_is_left(partial(_end_job, client, value), lambda: process.finalized)

    threading.excepthook = hook


def install_excepthook(
    client: AgentClient, tell: Callable[[BaseException], object] | None = None
) -> None:
    """End the job when an exception ends the main thread, after the hook there was has run.

    `tell` gets the exception before the job is ended, to say more about it.

    Call it after registering exit hooks that may wait for other ranks: a hook the program sets
    later replaces ours, and then the job is ended at exit, before the hooks registered earlier.
    """
    previous = sys.excepthook

    def hook(
        kind: type[BaseException], value: BaseException, traceback: TracebackType | None
    ) -> None:
        try:
            with cut_at_program(value, traceback):
                previous(kind, value, traceback)
        finally:
            if not issubclass(kind, _HARMLESS):
                if tell is not None:
                    tell(value)
                # a hook that the program set later may print what ours said, as torch's does
                if sys.excepthook is hook:
                    _end_job(client, value)

    def at_exit() -> None:
        value = getattr(sys, "last_value", None)
        interactive = hasattr(sys, "ps1")
        if value is None or interactive or sys.excepthook is hook or isinstance(value, _HARMLESS):
            return
        _end_job(client, value)

    sys.excepthook = hook
    atexit.register(at_exit)


@contextmanager
def cut_at_program(value: BaseException, traceback: TracebackType | None) -> Iterator[None]:
    """While an error of MPI is shown, its traceback ends where it left the program."""
    last = _last_of_program(value, traceback)
    cut = last.tb_next if last is not None else None
    try:
        if last is not None:
            last.tb_next = None
        yield
    finally:
        if last is not None:  # who looks at it later finds all of it
            last.tb_next = cut


def _last_of_program(value: BaseException, traceback: TracebackType | None) -> TracebackType | None:
    """Where an error of MPI left the program; None where our own frames are to be shown as well.

    The reason is in its text, and by which of our functions it came helps nobody; but for an
    internal error, which is ours to find.
    """
    if not isinstance(value, MPIError) or value.code == ERR_INTERN:
        return None
    last = None
    while traceback is not None:
        if program_frame(traceback.tb_frame) is traceback.tb_frame:
            last = traceback
        traceback = traceback.tb_next
    return last


def exit_code_of(problem: BaseException) -> int:
    """What a rank ends with by an exception: who waits for one that has ended is in a deadlock."""
    if not waits_for_ended(problem):
        return UNCAUGHT
    from ompy.runtime.diagnosis.autopsy import DEADLOCK

    return DEADLOCK


def _end_job(client: AgentClient, value: BaseException) -> None:
    if hasattr(value, "Get_error_class"):
        sleep(_CAUSE_FIRST)
    if client.usable:
        try:
            text = f"uncaught {type(value).__name__}: {value}"
        except Exception:
            text = f"uncaught {type(value).__name__}"
        code = exit_code_of(value)
        if code != UNCAUGHT:
            text = f"deadlock, what it waits for can never come: {text}"
        client.abort(code, text[:_TEXT_LIMIT])


def line_buffer_output() -> None:
    """Write each line of standard output at once, though it is a pipe and no terminal."""
    try:
        if stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode):
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    except (OSError, ValueError, AttributeError):  # closed, replaced or none
        pass
