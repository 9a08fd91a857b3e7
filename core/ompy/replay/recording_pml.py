"""Around the PML of a rank that is recorded: what wildcards match, what probes find, what comes.

Compiled with the others on the way of a message: a wildcard that has matched is written at once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_TRUNCATE
from ompy.data.request import Request
from ompy.frameworks.pml import MatchedMessage, Pml
from ompy.replay.counting_pml import MASK, CountingPml
from ompy.replay.data_log import body_bytes, message_bytes, taken_bytes
from ompy.replay.entry_writer import EntryWriter
from ompy.replay.events import (
    IMPROBE,
    IPROBE,
    MPROBE,
    PROBE,
    RECV,
    Cancelled,
    NothingFound,
    Posted,
    Returned,
)
from ompy.replay.program_lines import ProgramLines
from ompy.replay.replaying.received_bytes import bytes_in, has_come

if TYPE_CHECKING:
    from typing import Any

    from ompy.replay.recorder import Recorder

if DECLARING:
    from ompy.frameworks.communicator import Communicator


@cclass
class RecordingPml(CountingPml):
    """Writes down what the PML inside tells the program."""

    _events: EntryWriter
    _known: Communicator | None
    _lines: ProgramLines
    _number: int
    _order: int
    _recorder: Any
    _taken: dict[int, tuple[MatchedMessage, int]]
    _thread: U64
    __slots__ = tuple(__annotations__)

    def __init__(self, inner: Pml, recorder: Recorder) -> None:
        CountingPml.__init__(self, inner, recorder.data is not None)
        self._recorder = recorder
        self._events = recorder.events
        self._lines = recorder.lines
        self._known = None  # the communicator of the last look, and its number
        self._number = 0
        self._thread = raw.thread()
        recorder.pml = self
        self._order = 0  # of receives, where bytes are recorded
        self._taken = {}

    @cfunc
    def _write_look(
        self, how: int, communicator: Communicator, wanted_source: int, wanted_tag: int,
        source: int, tag: int, length: int,
    ) -> None:  # fmt: skip
        """Add what a receive got, or a probe found."""
        events = self._events
        if events.held or raw.thread() != self._thread:
            self._recorder.before_event()
        if communicator is not self._known:
            self._number = self._recorder.comm(communicator)
            self._known = communicator
        site: int = self._lines.number_of_caller()
        calls: int = self.calls & MASK
        events.append_look(
            site, calls, self.digest, how, self._number, wanted_source, wanted_tag,
            source, tag, length,
        )  # fmt: skip
        if events.problem:
            self._recorder.warn_of_problem()

    # --- receives

    @ccall
    def irecv_internal(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Its bytes are written; whoever listens to anybody is not of the program's making."""
        if self.every and self.threads is not None:
            with self.threads.lock:
                return self._begin_internal(communicator, convertor, source, tag)
        return self._begin_internal(communicator, convertor, source, tag)

    @cfunc
    def _begin_internal(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        request = self.inner.irecv(communicator, convertor, source, tag)
        if self.every and source >= 0:
            self._watch(communicator, convertor, request, 0)
        return request

    @ccall
    def irecv_numbered(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int, number: int
    ) -> Request:
        """A wildcard is an event, and what it matches is written when it is complete."""
        named = source >= 0 and tag >= 0
        if named and not self.every:
            return self.inner.irecv(communicator, convertor, source, tag)
        recorder = self._recorder
        if not named:
            comm = recorder.comm(communicator)
            recorder.write_event(Posted(recorder.prefix(), comm, number, source, tag))
        request = self.inner.irecv(communicator, convertor, source, tag)
        self._watch(communicator, convertor, request, 0 if named else number)
        return request

    @ccall
    def recv_looked_at(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """A wildcard is an event when its message is there."""
        request = self.inner.irecv(communicator, convertor, source, tag)
        self._order += 1
        order: int = self._order
        try:
            return self.inner.wait(communicator, request)
        finally:
            self._tell_received(communicator, convertor, source, tag, request, order)

    @cfunc
    def _tell_received(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int,
        request: Request, order: int,
    ) -> None:  # fmt: skip
        if not request.complete or request.cancelled or request.source < 0:
            return
        if request.error and request.error != ERR_TRUNCATE:
            return
        if source < 0 or tag < 0:
            self._write_look(
                RECV, communicator, source, tag, request.source, request.tag, request.length
            )
        if self.every:
            self._write_message(communicator, convertor, request, order)

    def tell_returned(self) -> None:
        """An event: which of several threads had first what it waited for."""
        self._recorder.write_event(Returned(self._recorder.prefix()))

    def _next_order(self) -> int:
        self._order += 1
        return self._order

    def _watch(
        self, communicator: Communicator, convertor: Convertor, request: Request, number: int
    ) -> None:
        """Hear when a receive is complete; `number` is 0 if its match follows from the program."""
        order = self._next_order()
        told = partial(self._completed, communicator, convertor, request, number, order)
        with communicator.context.engine.lock:
            request.notify(told)

    def _completed(
        self,
        communicator: Communicator,
        convertor: Convertor,
        request: Request,
        number: int,
        order: int,
    ) -> None:
        if not has_come(request):
            return
        if number:
            self._recorder.write_match(number, request.source, request.tag, request.length)
        if self.every:
            self._write_message(communicator, convertor, request, order)

    def _write_message(
        self, communicator: Communicator, convertor: Convertor, request: Request, order: int
    ) -> None:
        stream = (communicator.context_id, request.source, request.tag)
        data = bytes_in(convertor, request)
        self._recorder.write_data(message_bytes(order, stream, request.length, data))

    # --- looking

    def _write_nothing(self, how: int, communicator: Communicator, source: int, tag: int) -> None:
        recorder = self._recorder
        comm = recorder.comm(communicator)
        recorder.write_no(NothingFound(recorder.prefix(), how, comm, source, tag, 1))

    @ccall
    def probe(self, communicator: Communicator, source: int, tag: int) -> Request:
        """An event, if it is a wildcard."""
        if self.threads is not None:
            return self._probe_in_turn(communicator, source, tag)
        found = self.inner.probe(communicator, source, tag)
        if source < 0 or tag < 0:
            self._write_look(
                PROBE, communicator, source, tag, found.source, found.tag, found.length
            )
        return found

    def _probe_in_turn(self, communicator: Communicator, source: int, tag: int) -> Request:
        """What is found is still there when it is written: another thread may have taken it."""
        while True:
            self.inner.probe(communicator, source, tag)
            with self.threads.lock:
                found = self.inner.iprobe(communicator, source, tag)
                if found is None:
                    continue
                with self.threads:
                    self._write_look(
                        PROBE, communicator, source, tag, found.source, found.tag, found.length
                    )
                return found

    def _mprobe_in_turn(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """Likewise: what is taken is taken in turn, whoever it names."""
        while True:
            self.inner.probe(communicator, source, tag)
            with self.threads.lock:
                found = self.inner.improbe(communicator, source, tag)
                if found is None:
                    continue
                with self.threads:
                    self._write_look(
                        MPROBE, communicator, source, tag, found.source, found.tag, found.length
                    )
                    self._write_taken(communicator, found)
                return found

    @ccall
    def iprobe(self, communicator: Communicator, source: int, tag: int) -> Request | None:
        """An event."""
        if self.threads is not None:
            with self.threads:
                return self._iprobe(communicator, source, tag)
        return self._iprobe(communicator, source, tag)

    @cfunc
    def _iprobe(self, communicator: Communicator, source: int, tag: int) -> Request | None:
        found = self.inner.iprobe(communicator, source, tag)
        if found is None:
            self._write_nothing(IPROBE, communicator, source, tag)
        else:
            self._write_look(
                IPROBE, communicator, source, tag, found.source, found.tag, found.length
            )
        return found

    @ccall
    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """An event, if it is a wildcard."""
        if self.threads is not None:
            return self._mprobe_in_turn(communicator, source, tag)
        found = self.inner.mprobe(communicator, source, tag)
        if source < 0 or tag < 0:
            self._write_look(
                MPROBE, communicator, source, tag, found.source, found.tag, found.length
            )
        self._write_taken(communicator, found)
        return found

    @ccall
    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        """An event."""
        if self.threads is not None:
            with self.threads:
                return self._improbe(communicator, source, tag)
        return self._improbe(communicator, source, tag)

    @cfunc
    def _improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        found = self.inner.improbe(communicator, source, tag)
        if found is None:
            self._write_nothing(IMPROBE, communicator, source, tag)
            return None
        self._write_look(IMPROBE, communicator, source, tag, found.source, found.tag, found.length)
        self._write_taken(communicator, found)
        return found

    def _write_taken(self, communicator: Communicator, found: MatchedMessage) -> None:
        if self.every:
            order = self._next_order()
            self._taken[id(found)] = (found, order)
            stream = (communicator.context_id, found.source, found.tag)
            self._recorder.write_data(taken_bytes(order, stream, found.length))

    @ccall
    def imrecv(self, message: MatchedMessage, convertor: Convertor) -> Request:
        """Its bytes are written."""
        request = self.inner.imrecv(message, convertor)
        if self.every:
            _, order = self._taken.pop(id(message))
            request.notify(partial(self._received, convertor, request, order))
        return request

    def _received(self, convertor: Convertor, request: Request, order: int) -> None:
        if has_come(request):
            self._recorder.write_data(body_bytes(order, bytes_in(convertor, request)))

    @ccall
    def cancel(self, request: Request) -> None:
        """An event, if there is anything to cancel: whether it was in time.

        What ompy itself takes back is nobody's turn: whichever thread polls then does it.
        """
        number = self.number_of(request)
        if not number:
            self.inner.cancel(request)
        elif self.threads is not None:
            with self.threads:
                self._cancel(request, number)
        else:
            self._cancel(request, number)

    def _cancel(self, request: Request, number: int) -> None:
        self.inner.cancel(request)
        done = int(request.complete and request.cancelled)
        self._recorder.write_event(Cancelled(self._recorder.prefix(), number, done))
