"""`ompy-run`: start a job, show what it writes, end with its exit code (reference openmpi.md 2.4).

Lean at import, so that Ctrl-C is dealt with before anything takes time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ompy.runtime.ranks.forked import ForkedRank

COMPLETION: Final = "_OMPY_RUN_COMPLETE"  # the variable click's completion scripts set
INTERRUPTED: Final = 130  # 128 and SIGINT, as a shell has it


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code."""
    if COMPLETION in os.environ:
        from ompy.cli.completing.completion_run import answer_completion

        return answer_completion(COMPLETION)
    from ompy.outputs import keep_standard_streams

    changed = _end_at_interrupts()
    keep_standard_streams()
    if arguments is not None:  # not a process of its own
        try:
            return _guarded(lambda: _run(arguments))
        finally:
            if changed:
                signal.signal(signal.SIGINT, signal.default_int_handler)
    rank = _start_agent_early(sys.argv[1:])
    if rank is not None:  # the end of what follows is that of a program
        rank.run()
        return 0
    try:
        code = _guarded(lambda: _run(sys.argv[1:]))
    finally:
        _discard_early_agent()
    return _end(code)


def _end(code: int) -> int:
    """Leave at once, if nobody wants to be told: to take all modules apart takes its time."""
    import atexit
    import threading

    if atexit._ncallbacks() or threading.active_count() > 1:  # noqa: SLF001 - there is no other way to ask
        return code
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):  # as at any end of a program, which then says so
            return code
    os._exit(code)


def _end_at_interrupts() -> bool:
    """Until the job is looked after, Ctrl-C ends us as SIGTERM does, at once.

    Python's own handler raises, and what it raises in a callback of an import is lost.

    Returns:
        Whether it was Python's own until now.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return True


def _start_agent_early(words: Sequence[str]) -> ForkedRank | None:
    """Have the agent of this host ready when the job is. In a rank of its: what to run."""
    from ompy.runtime.ranks.warm import looks_like_python

    if not looks_like_python(words):
        return None
    # both the launcher and the agent need them: imported once, before they part
    from ompy.runtime.agents.early_agent import start_early

    try:
        return start_early()
    except OSError:  # too few descriptors or processes: whoever needs it says so
        return None


def _discard_early_agent() -> None:
    early = sys.modules.get("ompy.runtime.agents.early_agent")
    if early is not None:
        early.discard()


def _run(arguments: Sequence[str]) -> int:
    from ompy.cli.launch.launching import run_command

    if not {"--view", "-view"}.isdisjoint(arguments):
        from ompy.cli.launch.viewed_job import asks_for_view, run_viewed

        if asks_for_view(arguments):
            _discard_early_agent()
            return run_viewed(arguments)
    return run_command(arguments)


def _guarded(action: Callable[[], int]) -> int:
    try:
        return _with_errors_told(action)
    except BrokenPipeError:  # of help and versions: a job's output has ways of its own
        from ompy.outputs import READER_GONE, drop_standard_output

        drop_standard_output()
        return READER_GONE
    except (OSError, MemoryError, ImportError) as problem:
        from ompy.cli.launch.launching import NOT_STARTED, tell_user
        from ompy.outputs import output_failure
        from ompy.runtime.diagnosis.shortage import shortage

        failure = shortage(problem) or output_failure(problem)
        if not failure:
            raise
        tell_user(f"error: {failure}", "error")
        return NOT_STARTED


def _with_errors_told(action: Callable[[], int]) -> int:
    from ompy.cli.launch.command_line import PROGRAM, USAGE, Answered, CommandError
    from ompy.cli.launch.launching import NOT_STARTED, tell_user
    from ompy.mca.component import NotAvailable
    from ompy.mca.errors import ComponentError, UsageError
    from ompy.runtime.connections.control import ControlError

    try:
        return action()
    except Answered as end:  # after --help or --version
        return end.exit_code
    except UsageError as problem:
        for text in problem.problems:
            tell_user(f"error: {text}", "error")
        return problem.exit_code
    except (CommandError, ComponentError) as problem:
        advice = f"Try '{PROGRAM} --help'." if problem.exit_code == USAGE else ""
        tell_user(f"error: {problem}", "error", advice)
        return problem.exit_code
    except (NotAvailable, ControlError) as problem:
        tell_user(f"error: the job could not be started: {problem}", "error")
        return NOT_STARTED
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
