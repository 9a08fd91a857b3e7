"""Ranks that are kept between cells, as the notebook's kernel sees them."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, Final, NamedTuple

from ompy.addons.notebook.cells import Cell
from ompy.addons.notebook.channel import GoneError, Message, Registration, receive_registration
from ompy.addons.notebook.worker import ASK_SIGNAL
from ompy.check.logs import Record, read_record
from ompy.cli.notebook.job import READ_SIZE, NotebookJob
from ompy.cli.notebook.shown import JOB, Shown

GRACE_S: Final = 3.0  # s; arbitrary: what the other ranks get when one has failed
ASK_S: Final = 0.5  # s; arbitrary: how often they are asked then whether they wait
ASKED: Final = 2  # answers in a row that they wait; arbitrary: one may be chance
INTERRUPT_PATIENCE_S: Final = 5.0  # s; arbitrary: native code may take its time
END_PATIENCE_S: Final = 5.0  # s; arbitrary: what the ends of programs may take


class RanksError(RuntimeError):
    """There can be no ranks; the text says why."""


class Outcome(NamedTuple):
    """What came of a cell.

    Attributes:
        told: what each rank has told at its end, by rank.
        interrupted: by the user.
        alive: the ranks can run another cell.
        silent: ranks that have said nothing.
        deadlock: what the launcher has proven, or None.
    """

    told: dict[int, Message]
    interrupted: bool
    alive: bool
    silent: list[int]
    deadlock: Mapping[str, Any] | None

    @property
    def went_well(self) -> bool:
        """Whether all ranks came to the end of the cell."""
        return not self.silent and all(told["status"] == "ok" for told in self.told.values())


class Ranks:
    """n ranks that run one cell after the other.

    Attributes:
        size: how many.
        mca: the parameters they have.
        alive: they wait for a cell.
    """

    def __init__(self, size: int, mca: Sequence[tuple[str, str]]) -> None:
        """Start the processes; `wait_until_ready` waits for them.

        Args:
            size: how many.
            mca: parameters.
        """
        self.size = size
        self.mca = tuple(mca)
        self.alive = True
        self._registrations, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ranks: dict[int, Registration] = {}
        self._told: dict[int, Message] = {}
        self._waits: dict[int, int] = {}
        self._asked_at = 0.0
        self._failed_at = 0.0
        self._shown = Shown(None)
        self._job = NotebookJob(size, mca, theirs)

    def wait_until_ready(self, shown: Shown) -> None:
        """Return when every rank is up.

        Args:
            shown: shows what is said meanwhile.

        Raises:
            RanksError: one cannot.
        """
        self._shown = shown
        ready = 0
        while ready < self.size:
            for source in self._readable(None):
                try:
                    if source is self._registrations:
                        rank = receive_registration(self._registrations)
                        self._ranks[rank.rank] = rank
                        for each in (rank.output, rank.errors):
                            os.set_blocking(each, False)  # it may be drained when its turn comes
                    else:
                        source.channel.receive_message()
                        ready += 1
                except GoneError:
                    self._hear_job_out()
                    raise RanksError("the ranks could not be started") from None
        self._registrations.close()

    # a cell

    def run_cell(self, cell: Cell, order: Message, shown: Shown) -> Outcome:
        """Run a cell on all ranks; Ctrl-C interrupts them.

        Args:
            cell: it.
            order: what ranks are told with it.
            shown: shows what they write.
        """
        self._told, self._waits = {}, {}
        self._failed_at = self._asked_at = 0.0
        self._shown = shown
        interrupted = False
        try:
            for rank in self._ranks.values():
                with suppress(GoneError):  # its end is seen when it is listened to
                    rank.channel.send_message("cell", name=cell.name, **order)
            self._listen_until_done()
        except KeyboardInterrupt:
            interrupted = True
            self._interrupt_all()
        silent = [rank for rank in self._ranks if rank not in self._told]
        deadlock = None if self.alive else self._job.deadlock()
        shown.finish()
        return Outcome(dict(sorted(self._told.items())), interrupted, self.alive, silent, deadlock)

    def records(self) -> dict[int, Record]:
        """The call records of all ranks, also of those that have gone."""
        paths = {number: f"/proc/self/fd/{rank.record}" for number, rank in self._ranks.items()}
        return {number: read_record(path, number) for number, path in sorted(paths.items())}

    def _busy(self) -> list[Registration]:
        return [rank for number, rank in self._ranks.items() if number not in self._told]

    def _listen_until_done(self, deadline: float = float("inf")) -> None:
        """Hear the ranks until all have come to an end, one has gone, or it is too late."""
        while self._busy() and self.alive and time.monotonic() < deadline:
            watching = self._failed_at or deadline != float("inf")
            for source in self._readable(ASK_S if watching else None):
                self._hear(source)
            if self._failed_at and deadline == float("inf"):
                self._end_waits_for_failed()

    def _hear(self, rank: Registration) -> None:
        try:
            message = rank.channel.receive_message()
        except GoneError:
            self.alive = False
            self._hear_job_out()
            return
        if message["what"] == "waiting":
            self._waits[rank.rank] = self._waits.get(rank.rank, 0) + 1 if message["so"] else 0
            return
        self._told[rank.rank] = message
        self._drain(rank)
        if message["status"] != "ok" and not self._failed_at:
            self._failed_at = time.monotonic()

    def _end_waits_for_failed(self) -> None:
        """Once a rank has failed: interrupt the others when all that are left wait in MPI."""
        busy, now = self._busy(), time.monotonic()
        if not busy or now < self._failed_at + GRACE_S or now < self._asked_at + ASK_S:
            return
        if all(self._waits.get(rank.rank, 0) >= ASKED for rank in busy):
            self._signal(busy, signal.SIGINT)
            self._waits.clear()
        else:
            self._signal(busy, ASK_SIGNAL)
        self._asked_at = now

    def _interrupt_all(self) -> None:
        """The user has interrupted: so are the ranks; those that do not answer are killed."""
        self._signal(self._busy(), signal.SIGINT)
        with suppress(KeyboardInterrupt):  # once more: now
            self._listen_until_done(time.monotonic() + INTERRUPT_PATIENCE_S)
        if self._busy():
            self.alive = False

    def _signal(self, ranks: Sequence[Registration], number: int) -> None:
        for rank in ranks:
            with suppress(ProcessLookupError):
                os.kill(rank.process, number)

    # what can be read

    def _readable(self, seconds: float | None) -> Iterator[Any]:
        """Registrations or ranks that have something to say. Output is shown on the way."""
        ranks = list(self._ranks.values())
        sources: list[Any] = [rank.channel for rank in ranks]
        sources += [each for rank in ranks for each in (rank.output, rank.errors) if each >= 0]
        sources += [self._job.output] if self._job.output >= 0 else []
        sources += [self._registrations] if self._registrations.fileno() >= 0 else []
        owners = {id(rank.channel): rank for rank in ranks}
        for source in wait(sources, seconds):
            if isinstance(source, int):
                self._show(source)
            else:
                yield owners.get(id(source), source)

    def _show(self, descriptor: int) -> bool:
        """Show what a descriptor has. Returns whether there was anything."""
        if descriptor == self._job.output:
            data = self._job.read_output()
            self._shown.write_lines(JOB, data, errors=True)
            return bool(data)
        for number, rank in self._ranks.items():
            if descriptor in {rank.output, rank.errors}:
                try:
                    data = os.read(descriptor, READ_SIZE)
                except BlockingIOError:
                    return False
                self._shown.write_lines(number, data, errors=descriptor == rank.errors)
                if not data:
                    self._ranks[number] = _without(rank, descriptor)
                return bool(data)
        return False

    def _drain(self, rank: Registration) -> None:
        """Show what a rank has written before it said that it is done."""
        for descriptor in (rank.output, rank.errors):
            while descriptor >= 0 and wait([descriptor], 0) and self._show(descriptor):
                pass

    def _hear_job_out(self) -> None:
        """A rank has gone: `ompy-run` ends the others and says why."""
        deadline = time.monotonic() + END_PATIENCE_S
        while self._job.output >= 0 and time.monotonic() < deadline:
            for rank in list(self._ranks.values()):
                self._drain(rank)
            if wait([self._job.output], ASK_S):
                self._show(self._job.output)

    # the end

    def end_all(self) -> None:
        """Let the ranks end by themselves; those that do not are killed."""
        self.alive = False
        for rank in self._ranks.values():
            with suppress(GoneError):
                rank.channel.send_message("end")
        self._hear_job_out()
        self.kill()

    def kill(self) -> None:
        """End all processes at once."""
        self.alive = False
        self._job.kill()
        if self._registrations.fileno() >= 0:
            self._registrations.close()
        for rank in self._ranks.values():
            rank.channel.close()
            for descriptor in (rank.output, rank.errors, rank.record):
                if descriptor >= 0:
                    os.close(descriptor)
        self._ranks.clear()


def _without(rank: Registration, descriptor: int) -> Registration:
    """A rank one of whose outputs has come to its end."""
    os.close(descriptor)
    if descriptor == rank.output:
        return rank._replace(output=-1)
    return rank._replace(errors=-1)
