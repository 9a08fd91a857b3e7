"""The messages of one collective call.

Receives are posted before sends begin, and nothing is waited for before everything of a step
is under way: no step relies on a peer's buffering. When a step fails, what was posted is
taken back, so that no late message is stored in memory the caller believes to be his again.
"""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Final

from ompy.data.convertor import ContiguousConvertor, Convertor
from ompy.data.errors import MPIError
from ompy.data.message import Message
from ompy.data.request import Request
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import STANDARD

from ompy_components.coll.basic.packed import in_place

# arbitrary: a message whose beginning is here ends soon unless its sender is stuck
WITHDRAWAL_TIMEOUT: Final = 1_000_000_000  # ns


class Exchange:
    """A context: sends and receives of one call with one internal tag."""

    __slots__ = ("_communicator", "_pml", "_receives", "_sends", "_tag")

    def __init__(self, communicator: Communicator, tag: int) -> None:
        self._communicator = communicator
        self._pml = communicator.pml
        self._tag = tag
        self._receives: list[Request] = []
        self._sends: list[Request] = []

    def __enter__(self) -> Exchange:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if problem is not None:
            self._withdraw(patient=isinstance(problem, MPIError))

    def receive_into(self, convertor: Convertor, source: int) -> Request:
        """Post a receive; its memory is in use until `finish`."""
        request = self._pml.irecv(self._communicator, convertor, source, self._tag)
        self._receives.append(request)
        return request

    def send_from(self, convertor: Convertor, target: int) -> None:
        """Begin to send; the memory is in use until `finish`."""
        request = self._pml.isend(self._communicator, convertor, target, self._tag, STANDARD)
        self._sends.append(request)

    def receive(self, view: memoryview, source: int) -> Request:
        """Post a receive into packed memory."""
        return self.receive_into(ContiguousConvertor(view), source)

    def send(self, view: memoryview, target: int) -> None:
        """Begin to send packed memory."""
        self.send_from(ContiguousConvertor(view), target)

    def receive_message(self, message: Message, source: int) -> Request:
        """Post a receive straight into a message's memory."""
        return self.receive_into(_convertor(message), source)

    def send_message(self, message: Message, target: int) -> None:
        """Begin to send straight from a message's memory."""
        self.send_from(_convertor(message), target)

    def swap(self, out: memoryview, target: int, into: memoryview, source: int) -> None:
        """One step: send `out`, receive `into`, and wait for both."""
        self.receive(into, source)
        self.send(out, target)
        self.finish()

    def finish(self) -> None:
        """Wait for everything under way.

        Raises:
            MPIError: the first failure, in the order of posting, receives first.
        """
        for requests in (self._receives, self._sends):
            for request in requests:
                self._pml.wait(self._communicator, request)
            requests.clear()

    def _withdraw(self, *, patient: bool) -> None:
        """Cancel the receives no message has come for; give the others a while to end."""
        for request in self._receives:
            if not request.complete:
                with suppress(MPIError):
                    self._pml.cancel(request)
        if patient:
            engine = self._communicator.context.engine
            for request in self._receives:
                if not request.complete:
                    engine.wait(request, WITHDRAWAL_TIMEOUT)


def _convertor(message: Message) -> Convertor:
    view = in_place(message)
    return ContiguousConvertor(view) if view is not None else message.convertor()
