"""The program of a notebook's ranks, started by the kernel: runs one cell after the other.

Between cells a rank waits for the kernel, outside of MPI. One that has come to the end of a cell
waits for the others inside of MPI, so that what they still want of it goes on, and so that the
launcher can prove that one which waits for it does so for ever.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Final

from ompy.addons.notebook.cells import Cell
from ompy.addons.notebook.cells import __file__ as cells_file
from ompy.addons.notebook.channel import Channel, GoneError, Message, register_rank
from ompy.check.record import is_ours

if TYPE_CHECKING:
    from ompy.check.checker import Checker

ASK_SIGNAL: Final = signal.SIGRTMIN + 7  # arbitrary: libraries take the first ones
KERNEL_GONE: Final = 1  # exit code nobody is left to read
ROUNDS: Final = 32  # tags of a cell; more than the logarithm of any number of ranks
CELLS: Final = 1 << 16  # whose tags differ; arbitrary: what an old cell has left is long gone then
_SLEEPERS: Final = ("asyncio", "selectors", "uvloop", "greenlet")  # below what waits in ompy


class CellRank:
    """One rank.

    Attributes:
        running: a cell's own code runs: signals are for it.
    """

    def __init__(self, channel: Channel, record: int) -> None:
        """Bring MPI up.

        Args:
            channel: to the kernel.
            record: descriptor of the file for its calls.
        """
        from ompy import MPI

        self._channel = channel
        self._record = record
        self._checker: Checker | None = None
        self._comm = MPI.COMM_WORLD.Dup()
        self._comm.Set_name("the notebook")
        self._main = ModuleType("__main__")
        self._count = 0
        self._older = False  # messages of cells that have ended are there
        self.running = False
        sys.modules["__main__"] = self._main
        signal.signal(signal.SIGINT, self._interrupted)
        signal.signal(ASK_SIGNAL, self._asked)

    def serve_kernel(self) -> None:
        """Run cells until the kernel has enough; if it has gone, end at once."""
        self._channel.send_message("ready")
        try:
            while (order := self._channel.receive_message())["what"] == "cell":
                self._channel.send_message("done", **self._cell(order))
        except GoneError:
            os._exit(KERNEL_GONE)

    # signals of the kernel

    def _interrupted(self, _number: int, _frame: FrameType | None) -> None:
        if self.running:
            raise KeyboardInterrupt

    def _asked(self, _number: int, frame: FrameType | None) -> None:
        """Say whether this rank waits in a call of MPI."""
        if self.running and frame is not None:
            name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            self._channel.send_message("waiting", so=is_ours(frame) or name in _SLEEPERS)

    # a cell

    def _cell(self, order: Message) -> Message:
        cell = Cell(order["name"], order["options"], order["body"])
        cell.keep_source()
        self._count += 1
        unknown = self._begin_record(anew=order["anew"]) if order["record"] else False
        told: Message = {"status": "ok", "unknown": unknown}
        try:
            try:
                self._run(cell, record=order["record"])
            finally:
                self.running = False
        except BaseException as problem:  # of the user's program, whatever it is
            self.running = False
            told.update(_as_told(problem, cell))
            _compare_no_calls()
            if self._checker is not None:
                self._checker.uncaught(problem, problem.__traceback__)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return {**told, **self._left()}

    def _run(self, cell: Cell, *, record: bool) -> None:
        with self._unrecorded(not record):
            self.running = True
            cell.run_in(self._main.__dict__)
        with self._unrecorded(True):
            exec(cell.end_code("meet"), {"__name__": "__main__", "meet": self._meet})  # noqa: S102

    def _meet(self) -> None:
        """Wait until all have come to the end, in logarithmically many rounds of messages.

        No collective call: if this one is interrupted, the next must not meet its messages.
        """
        rank, size = self._comm.Get_rank(), self._comm.Get_size()
        distance, tag = 1, self._count % CELLS * ROUNDS
        while distance < size:
            self._comm.isend(None, (rank + distance) % size, tag)
            self._comm.recv(source=(rank - distance) % size, tag=tag)
            distance, tag = 2 * distance, tag + 1

    # its calls

    def _begin_record(self, *, anew: bool) -> bool:
        """Have calls written down. Returns whether there are messages that are older."""
        if self._checker is None:
            self._checker = _begin_checking(self._record)
        elif anew:
            from ompy.check.rank import begin_anew

            begin_anew(self._checker)
        return anew and self._older

    @contextmanager
    def _unrecorded(self, on: bool) -> Iterator[None]:
        """Have calls not written down."""
        if self._checker is None or not on:
            yield
            return
        self._checker.inside.on = True
        try:
            yield
        finally:
            self._checker.inside.on = False

    def _left(self) -> Message:
        """What a later cell may still take up."""
        from ompy import MPI

        with self._unrecorded(True):
            self._older = not MPI.Is_finalized() and MPI.COMM_WORLD.Iprobe()
        if self._checker is None:
            return {"idle": True, "open": []}
        return {"idle": self._checker.is_idle(), "open": self._checker.requests.open_calls()}


def _compare_no_calls() -> None:
    """A cell has ended midway, here or at all ranks, so their collective calls may differ."""
    from ompy.mpi.processes import life

    if life.is_up():
        life.current().process.other_calls = lambda: None


def _begin_checking(record: int) -> Checker:
    from ompy.check.rank import check_rank
    from ompy.check.recorder import Recorder
    from ompy.mpi.processes import life

    process = life.current().process
    values = process.registry.values("check")
    recorder = Recorder(f"/proc/self/fd/{record}", values.limit)
    return check_rank(process, recorder, synchronous=values.buffering)


def _as_told(problem: BaseException, cell: Cell) -> Message:
    """What the kernel is told of an exception: where, and its traceback without our lines."""
    shown = traceback.TracebackException.from_exception(problem)
    ours = _our_files(problem) - {__file__, cells_file}
    _drop_ours(shown, {*ours, __file__, cells_file})
    frames = [frame for frame in shown.stack if frame.lineno]
    place, at_end = "", False
    if frames:
        last = frames[-1]
        at_end = last.filename == cell.name and last.lineno == cell.end
        place = f"{last.filename}:{last.lineno} in {last.name}: {last.line}"
        place = f"the end of {cell.name}" if at_end else place
    status = "interrupted" if isinstance(problem, KeyboardInterrupt) else "raised"
    summary = "".join(traceback.format_exception_only(problem)).strip().rpartition("\n")[2]
    return {
        "status": status,
        "text": "".join(shown.format()),
        "summary": summary,
        "place": place,
        "in_mpi": bool(ours) and not at_end,
    }


def _our_files(problem: BaseException) -> set[str]:
    """Files whose frames are ours, in a chain of exceptions."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[BaseException | None] = [problem]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
        entry: TracebackType | None = one.__traceback__
        while entry is not None:
            name = str(entry.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
            if is_ours(entry.tb_frame) or name in _SLEEPERS:
                found.add(entry.tb_frame.f_code.co_filename)
            entry = entry.tb_next
    return found


def _drop_ours(shown: Any, ours: set[str]) -> None:
    if shown is None:
        return
    kept = [frame for frame in shown.stack if frame.filename not in ours]
    shown.stack = traceback.StackSummary.from_list(kept)
    _drop_ours(shown.__cause__, ours)
    _drop_ours(shown.__context__, ours)


def main() -> None:
    """Be a rank of a notebook."""
    record = os.memfd_create("ompy-calls")
    channel = register_rank(int(os.environ["OMPY_RANK"]), record)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.path.insert(0, "")  # cells import what lies beside the notebook; we did not
    CellRank(channel, record).serve_kernel()
