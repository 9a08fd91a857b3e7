"""The trace of a real rank: always a flight recorder, and a file when the job is traced.

The file is complete whatever ends the rank: finalizing, the end of the interpreter, an abort, or
the SIGTERM that ends a job because another rank failed. Only SIGKILL costs the last events. Where
it cannot be written the rank goes on without.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from ompy import outputs
from ompy.trace.sink import Trace

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.proc import Proc
    from ompy.mca.registry import Registry
    from ompy.trace.trace_files import TraceWriter


def open_trace(registry: Registry, me: Proc) -> Trace:
    """The trace of this process's rank, as the parameters `trace_base_*` say."""
    values = registry.values("trace")
    trace = Trace(me.rank, time.monotonic_ns, values.recent)
    if values.directory:
        _write_to(trace, values.directory, values.limit, me)
    return trace


def _write_to(trace: Trace, directory: str, limit: int, me: Proc) -> None:
    import atexit

    from ompy.trace.trace_files import RankHeader, TraceWriter

    monotonic, wall = wire_up_times()
    try:
        writer = TraceWriter(
            directory, RankHeader(me.rank, me.node, me.hostname, monotonic, wall), limit
        )
    except OSError as problem:
        text = f"trace_base_directory {directory}: {problem.strerror}; nothing of it is traced"
        outputs.warn(text, ("ompy", f"rank {me.rank}"))
        return
    trace.start(writer)
    atexit.register(trace.finish, "exit")
    os.register_at_fork(after_in_child=trace.forget)
    if threading.current_thread() is threading.main_thread():
        _finish_at_sigterm(trace, writer)


def capture_wire(context: RankContext, registry: Registry) -> None:
    """Have a traced rank keep what it sends, if `trace_base_wire` says so.

    Call before anything uses the rank's network, and before faults are put into it.
    """
    most = registry.values("trace").wire
    if most and context.trace.active:
        from ompy.net.capture import Capture

        context.network.install(Capture(context.network, context.trace, most))


def wire_up_times() -> tuple[int, int]:
    """Nanoseconds of the monotonic and the wall clock at one moment: the closest of a few looks."""
    looks = []
    for _ in range(5):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        looks.append((after - before, (before + after) // 2, wall))
    _, monotonic, wall = min(looks)
    return monotonic, wall


def _finish_at_sigterm(trace: Trace, writer: TraceWriter) -> None:
    """Close the file when the job is being ended, then end as we would have."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return  # the program's own handler ends it in an orderly way, or not

    def end(number: int, frame: Any) -> None:
        if writer.busy:  # between two of its writes: let it come to the end of this one
            writer.when_done = lambda: end(number, frame)
            return
        trace.finish("SIGTERM")
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)
