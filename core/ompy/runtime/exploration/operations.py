"""Operations of an explored world: which are under way, which are complete and by what."""

from __future__ import annotations

from ompy.runtime.exploration.accounts import Accounts
from ompy.runtime.exploration.boxes import Box, Message, Operation, Receive
from ompy.runtime.exploration.events import DONE, Event
from ompy.runtime.exploration.knowledge import complaint_of, is_late
from ompy.runtime.exploration.waits import Completion, Rank


class Operations(Accounts):
    """What ranks have begun, and what it depends on.

    Attributes:
        events: the choices that were made, in their order.
    """

    def __init__(self, size: int) -> None:
        """Nothing is under way, and nothing was chosen."""
        super().__init__(size)
        self.events: list[Event] = []
        self._numbers = 0
        self._turns = 0  # messages that were taken
        self._finished: dict[Operation, int] = {}  # past of each completion

    def past_of_completion(self, operation: Operation) -> int | None:
        """The events that it depends on; None if the operation was never complete."""
        return self._finished.get(operation)

    def _enter(self, state: Rank, event: Event) -> None:
        """An event that its rank knows of."""
        state.past |= event.past | 1 << event.number
        self.events.append(event)

    def _begin(self, rank: int, number: int, *, inner: bool) -> None:
        state = self._ranks[rank]
        state.open.add(number)
        if inner:
            state.inner.add(number)

    def _new_number(self) -> int:
        self._numbers += 1
        return self._numbers - 1

    def _turn_taken(self, message: Message) -> None:
        self._turns += 1
        message.turn = self._turns

    def _take(self, box: Box, receive: Receive, message: Message, past: int) -> None:
        """A receive takes a message; both may be complete by that, and by what it depends on."""
        box.take_message(receive, message)
        self._turn_taken(message)
        what = (DONE, receive.operation[1], message.source, message.tag, message.data)
        told = Completion(what, past, box, message, message.sender, message.knows)
        self._finish(receive.operation, told)
        self._finish_send(receive, message, past)

    def _finish_send(self, receive: Receive, message: Message, past: int) -> None:
        if message.ready and is_late(receive, message):
            self._improper.append(complaint_of(message, receive.operation[0], receive))
        if message.synchronous:
            what = (DONE, message.sender[1], message.source, message.tag, None)
            told = Completion(what, past, None, None, receive.operation, receive.knows)
            self._finish(message.sender, told)

    def _finish(self, operation: Operation, completion: Completion) -> None:
        rank, number = operation
        state = self._ranks[rank]
        state.open.discard(number)
        state.done[number] = completion
        self._finished[operation] = completion.past
