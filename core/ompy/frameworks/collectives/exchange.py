"""The messages of one collective call.

Receives are posted before sends begin, and nothing is waited for before everything of a step
is under way: no step relies on a peer's buffering. When a step fails, what was posted is
taken back, so that no late message is stored in memory the caller believes to be his again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.convertor import ContiguousConvertor, Convertor
from ompy.data.errors import MPIError
from ompy.data.message import Blocks, Message
from ompy.data.packed import different_amounts, in_place
from ompy.data.request import Request
from ompy.frameworks.collectives.patience import PATIENCE, abandon, explained, inquire
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import STANDARD, Pml

# arbitrary: a message whose beginning is here ends soon unless its sender is stuck
WITHDRAWAL_TIMEOUT: Final = 1_000_000_000  # ns


@cclass
class Exchange:
    """Sends and receives of one call with one internal tag, a step at a time.

    Attributes:
        communicator: whose call it is.
        rank: of this process in it.
        size: members.
        whole: every message has to fill its room: a reduction would combine what was there before.
        word: of the call, as the communicator's order has it.
    """

    _pml: Pml
    _receives: list[tuple[Request, int, int]]
    _sends: list[tuple[Request, int]]
    _tag: int
    communicator: Communicator
    rank: int
    size: int
    whole: bool
    word: U64
    __slots__ = tuple(__annotations__)

    def __init__(self, communicator: Communicator, tag: int) -> None:
        self.communicator = communicator
        self.rank = communicator.rank
        self.size = communicator.size
        self._pml = communicator.pml
        self._tag = tag
        self.word = communicator.order.word
        self.whole = False
        # each with the member, and receives with what they have room for
        self._receives = []
        self._sends = []

    @ccall
    def receive_into(self, convertor: Convertor, source: int) -> Request:
        """Post a receive; its memory is in use until the step has ended."""
        request = self._pml.irecv(self.communicator, convertor, source, self._tag)
        self._receives.append((request, source, convertor.size))
        return request

    @ccall
    def send_from(self, convertor: Convertor, target: int) -> None:
        """Begin to send; the memory is in use until the step has ended."""
        request = self._pml.isend(self.communicator, convertor, target, self._tag, STANDARD)
        self._sends.append((request, target))

    @ccall
    def receive(self, view: memoryview, source: int) -> Request:
        """Post a receive into packed memory."""
        return self.receive_into(ContiguousConvertor(view), source)

    @ccall
    def send(self, view: memoryview, target: int) -> None:
        """Begin to send packed memory."""
        self.send_from(ContiguousConvertor(view), target)

    @ccall
    def receive_message(self, message: Message, source: int) -> Request:
        """Post a receive straight into a message's memory."""
        return self.receive_into(_convertor(message), source)

    @ccall
    def send_message(self, message: Message, target: int) -> None:
        """Begin to send straight from a message's memory."""
        self.send_from(_convertor(message), target)

    @ccall
    def receive_blocks(
        self, blocks: Blocks, sources: tuple[int, ...], places: Sequence[int]
    ) -> None:
        """Post a receive into some of the blocks, each from the source at its place."""
        for each in places:
            place: int = each
            self.receive_into(_convertor(blocks.block(place)), sources[place])

    @ccall
    def send_blocks(self, blocks: Blocks, targets: tuple[int, ...], places: Sequence[int]) -> None:
        """Begin to send some of the blocks, each to the target at its place."""
        for each in places:
            place: int = each
            self.send_from(_convertor(blocks.block(place)), targets[place])

    @ccall
    def swap(self, out: memoryview, target: int, into: memoryview, source: int) -> None:
        """Receive `into` and begin to send `out`: the messages of most algorithms' steps."""
        self.receive(into, source)
        self.send(out, target)

    # --- the end of a step, for who runs the schedule

    @ccall
    def finish(self) -> None:
        """Wait for everything under way.

        Raises:
            MPIError: the first failure, in the order of posting, receives first; or a member was
                found to have made another call.
        """
        request: Request
        for request, _, _ in self._receives:
            if not request.complete or request.error:
                self._wait(request)
        for request, _ in self._sends:
            if not request.complete or request.error:
                self._wait(request)
        self._forget()

    @ccall
    def finish_receiving(self) -> None:
        """As `finish`, but whom a send did not reach has ended, and need not be told.

        Raises:
            MPIError: the first receive that failed, or a member has made another call.
        """
        request: Request
        for request, _, _ in self._receives:
            if not request.complete or request.error:
                self._wait(request)
        for request, _ in self._sends:
            if not request.complete:
                with suppress(MPIError):
                    self._wait(request)
        self._forget()

    @cfunc
    def _wait(self, request: Request) -> None:
        communicator = self.communicator
        if not request.complete and not communicator.context.engine.wait(request, PATIENCE):
            inquire(communicator, request, self.awaited, self.word)
        if request.error:
            raise MPIError(request.error, request.detail)

    @ccall
    def settle(self) -> None:
        """Forget what is under way, as all of it is complete.

        Raises:
            MPIError: the first failure, in the order of posting, receives first.
        """
        request: Request
        for request, _, _ in self._receives:
            if request.error:
                raise MPIError(request.error, request.detail)
        for request, _ in self._sends:
            if request.error:
                raise MPIError(request.error, request.detail)
        self._forget()

    def _all(self) -> list[Request]:
        """What is under way, in the order of posting, receives first."""
        return [each[0] for each in self._receives] + [each[0] for each in self._sends]

    @cfunc
    def _forget(self) -> None:
        if self.whole:
            self._check_whole()
        self._receives.clear()
        self._sends.clear()

    @cfunc
    def _check_whole(self) -> None:
        for request, source, expected in self._receives:
            if request.length < expected:
                raise different_amounts(request.length, source, expected)

    def awaited(self) -> set[int]:
        """The ranks that the step still waits for."""
        found = {rank for request, rank, _ in self._receives if not request.complete}
        return found | {rank for request, rank in self._sends if not request.complete}

    @ccall
    def incomplete(self) -> list[Request]:
        """What the step still waits for."""
        found: list[Request] = []
        request: Request
        for request, _, _ in self._receives:
            if not request.complete:
                found.append(request)
        for request, _ in self._sends:
            if not request.complete:
                found.append(request)
        return found

    def failed(self) -> bool:
        """Whether anything under way has failed."""
        return any(request.error for request in self._all())

    def cancel(self) -> list[Request]:
        """Take back the receives no message has come for; those that are still under way."""
        for request in self.receiving():
            with suppress(MPIError):
                self._pml.cancel(request)
        return self.receiving()

    def receiving(self) -> list[Request]:
        """The receives that are not complete."""
        return [request for request, _, _ in self._receives if not request.complete]

    def abandon(self, problem: Exception) -> None:
        """This member's part has failed: the others are not to wait for it."""
        abandon(self.communicator, self._tag, problem)

    def explained(self, problem: MPIError) -> MPIError:
        """The error, or that a member that has left had made another call."""
        return explained(self.communicator, self.word, problem)

    def withdraw(self, *, patient: bool) -> None:
        """Cancel the receives no message has come for; give the others a while to end."""
        left = self.cancel()
        if patient:
            engine = self.communicator.context.engine
            for request in left:
                engine.wait(request, WITHDRAWAL_TIMEOUT)


@cfunc
def _convertor(message: Message) -> Convertor:
    view = in_place(message)
    return ContiguousConvertor(view) if view is not None else message.convertor()
