"""What a rank did when it had been told this and that: remembered, and asked of it only once.

A rank of an explored world does what follows from what it was told, and nothing else. So what it
said at each point of its life is kept in a tree whose edges are what it was told. A world that
tells it the same again needs no process for it. Only where a world tells it something new is a
process of the rank made: a twin of one that waits nearby in the tree, which is told in one piece
what is between, and says whether it still does the same.
"""

from __future__ import annotations

import marshal
import socket
from collections import OrderedDict
from typing import Any, Final

from ompy.runtime.exploration.payloads import with_payloads
from ompy.runtime.simulation.conducted import ODD
from ompy.runtime.simulation.line import Line, LineClosed

FORM: Final = 2  # of marshal: the last in which equal values are equal bytes
FAR: Final = 24  # turns; a twin takes as long as about 20 of them (measured)
KEPT: Final = 24  # processes that wait of each rank; arbitrary: one takes about 3 MB

Batch = list[tuple[Any, ...]]


class Undetermined(Exception):
    """What a rank does does not follow from what it was told."""


class Unfit(Exception):
    """A rank cannot have twins."""


class Gone(Exception):
    """A rank's process has gone without a word."""


class Moment:
    """A point in a rank's life: it has said something and waits for the answer, or has ended.

    Attributes:
        batch: the calls that it made; the last is what it waits for.
        told: the answer to the moment before, in marshal's form.
        parent: that moment; None of the first.
        after: what it said then, by answer.
        line: to a process that waits here, if there is one.
        stays: that one makes twins, and stays here.
    """

    __slots__ = ("after", "batch", "line", "parent", "stays", "told")

    def __init__(self, batch: Batch, told: bytes, parent: Moment | None) -> None:
        self.batch = batch
        self.told = told
        self.parent = parent
        self.after: dict[bytes, Moment] = {}
        self.line: Line | None = None
        self.stays = False

    def recorded(self) -> list[tuple[Any, ...]]:
        """The entries of the record of calls, from the first moment on."""
        found: list[list[tuple[Any, ...]]] = []
        at = self
        while at.parent is not None:
            found += [call[1] for call in reversed(at.batch) if call[0] == "checked"]
            at = at.parent
        return [event for events in reversed(found) for event in events]


class Histories:
    """Of one rank.

    Attributes:
        first: the moment at which they begin.
        runs: processes that were made.
    """

    def __init__(self, batch: Batch, line: Line, patience: float) -> None:
        """Begin where the rank is now.

        Args:
            batch: what it has said last.
            line: to its process, which waits; the caller's to close.
            patience: seconds of real time it may run without a call.
        """
        self.first = Moment(batch, b"", None)
        self.first.line = line
        self.first.stays = True
        self.runs = 0
        self._patience = patience
        self._waiting: OrderedDict[Moment, None] = OrderedDict()  # with a process, oldest first

    def go_on(self, moment: Moment, answer: tuple[Any, ...]) -> Moment:
        """What the rank does when it is told that.

        Raises:
            Gone: its process ends without a word.
            TimeoutError: it does not come back.
            Undetermined, Unfit: it cannot be explored so.
        """
        told = marshal.dumps(answer, FORM)
        found = moment.after.get(told)
        if found is None:
            found = moment.after[told] = self._run(moment, told)
        return found

    def end_processes(self) -> None:
        """End all processes but the first."""
        for moment in self._waiting:
            self._drop(moment)
        self._waiting.clear()

    def _run(self, moment: Moment, told: bytes) -> Moment:
        try:
            batch, line = self._tell(moment, told)
        except LineClosed:
            self.end_processes()  # one that made it may have ended, and took it along
            try:
                batch, line = self._tell(moment, told)
            except LineClosed:
                raise Gone from None
        if batch[-1][0] == ODD:
            raise Undetermined
        made = Moment(with_payloads(batch), told, moment)
        if batch[-1][0] == "end":
            line.close()
        else:
            self._put(made, line)
        return made

    def _tell(self, moment: Moment, told: bytes) -> tuple[Batch, Line]:
        """Tell a process that is there, or comes there; what it says, and the line to it."""
        line = self._process_at(moment)
        line.send_data(told)
        batch: Batch = line.receive(self._patience)
        return batch, line

    def _process_at(self, moment: Moment) -> Line:
        """A process that waits there and may be used up."""
        between = []
        at = moment
        while at.line is None:
            between.append(at)
            assert at.parent is not None, "the first has one"
            at = at.parent
        line = self._taken(at)
        if len(between) > FAR:
            middle = between[FAR // 2]
            self._lead(line, between[FAR // 2 :])
            batch = line.receive(self._patience)
            if batch != middle.batch:
                raise Undetermined
            middle.stays = True
            self._put(middle, line)
            between = between[: FAR // 2]
            line = self._taken(middle)
        if between:
            self._lead(line, between)
            if line.receive(self._patience) != moment.batch:
                raise Undetermined
        return line

    @staticmethod
    def _lead(line: Line, between: list[Moment]) -> None:
        """Tell it what is between; it answers the last only."""
        past: list[tuple[Any, Any]] = []
        for one in reversed(between):
            past.append((marshal.loads(one.told), one.batch))  # noqa: S302 - our own
        past[-1] = (past[-1][0], None)
        line.send((0, "past", past, [], {}))

    def _taken(self, moment: Moment) -> Line:
        """The process at a moment, or a twin of it where it stays."""
        line = moment.line
        assert line is not None, "there is one"
        if not moment.stays:
            moment.line = None
            self._waiting.pop(moment, None)
            return line
        if moment in self._waiting:
            self._waiting.move_to_end(moment)
        line.ask_fork()
        end, process = line.receive_end()
        self.runs += 1
        if not process:
            end.close()
            raise Unfit
        return _line(end)

    def _put(self, moment: Moment, line: Line) -> None:
        moment.line = line
        self._waiting[moment] = None
        while len(self._waiting) > KEPT:
            self._drop(self._waiting.popitem(last=False)[0])

    @staticmethod
    def _drop(moment: Moment) -> None:
        if moment.line is not None:
            moment.line.close()
        moment.line = None
        moment.stays = False


def _line(end: socket.socket) -> Line:
    return Line(end)
