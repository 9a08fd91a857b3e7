"""Operations of an explored world: which are under way, which are complete and by what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ompy.runtime.exploration.accounts import Accounts
from ompy.runtime.exploration.boxes import Box, Message, Operation, Receive
from ompy.runtime.exploration.events import DONE, Event
from ompy.runtime.exploration.matching.knowledge import SERVED, STEPS, complaint_of, is_late, joined
from ompy.runtime.exploration.waits import Completion, Rank, Whole


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
        # of collective calls: what their end depends on, and who has come
        self._calls: dict[tuple[int, ...], tuple[int, list[Operation]]] = {}

    def past_of_completion(self, operation: Operation) -> int | None:
        """The events that it depends on; None if the operation was never complete."""
        return self._finished.get(operation)

    def note_whole(
        self,
        rank: int,
        number: int,
        context: int = -1,
        tag: int = 0,
        parts: Sequence[int] = (),
        kept: bool = False,
        asked: bool = False,
    ) -> None:
        """Messages of a rank are one operation of its program from now on, or that is complete.

        Args:
            rank: whose.
            number: of the operation.
            context: id of the communicator of the messages; -1 if all have come.
            tag: of the messages.
            parts: receives that belong to it: what is read in a window by them, again and again in
                vain, is a poll, and that the program is told of it changes nothing in that.
            kept: what has come of it is remembered until the program is told (`add_parts`).
            asked: only who looks for it by its number is told of it.
        """
        state = self._ranks[rank]
        if context >= 0:
            whole = Whole(number, state.past, state.knows, kept=kept)
            state.wholes[context, tag] = whole
            self._begin(rank, number, inner=False)
            for part in parts:
                state.apart.setdefault(part, []).append(whole)
            if parts:
                state.reads.add(number)
            if kept:
                state.kept[number] = whole
            if asked:
                state.asked[number] = 0
            return
        key = next(key for key, whole in state.wholes.items() if whole.number == number)
        whole = state.wholes.pop(key)
        what = (DONE, number, 0, 0, None)
        told = Completion(what, whole.past, None, None, (rank, 0), whole.knows)
        self._finish((rank, number), told)

    def is_asked(self, operation: Operation) -> bool:
        """Whether only who looks for an operation is told of it."""
        return operation[1] in self._ranks[operation[0]].asked

    def add_parts(
        self, rank: int, number: int, parts: Sequence[int], among: int, now: bool
    ) -> None:
        """Messages of a rank belong to an operation, too.

        Args:
            rank: whose.
            number: of the operation, which is under way.
            parts: numbers of the messages.
            among: of the operation to which they belong besides, and that remembers which of them
                have come; 0 for none.
            now: the program makes them now: the operation depends on all that it knows.
        """
        state = self._ranks[rank]
        whole = next(one for one in state.wholes.values() if one.number == number)
        if now:
            whole.past |= state.past
            whole.knows = joined(whole.knows, state.knows, (rank, 0))
        come = (state.kept[among].come if among in state.kept else None) or {}
        for part in parts:
            if part in come:
                past, knows = come[part]
                whole.past |= past
                whole.knows = joined(whole.knows, knows, (rank, 0))
            else:
                state.apart.setdefault(part, []).append(whole)

    def enter_call(self, operation: Operation, call: tuple[int, ...], members: int) -> None:
        """A rank has come to a collective call, which ends at none before all are there.

        It says nothing of what others have begun: other libraries' calls may end before.

        Args:
            operation: complete then.
            call: the same at all members.
            members: how many there are.
        """
        self._begin(*operation, inner=True)
        past, come = self._calls.get(call, (0, []))
        past |= self._ranks[operation[0]].past
        come.append(operation)
        self._calls[call] = past, come
        if len(come) < members:
            return
        del self._calls[call]
        for rank, number in come:
            told = Completion((DONE, number, 0, 0, None), past, None, None, (rank, 0), {})
            self._finish((rank, number), told)

    def _before(
        self, state: Rank, number: int, context: int, tag: int
    ) -> tuple[int, Mapping[int, int]]:
        """What a message or a receive depends on, and what its rank knew then."""
        whole = state.wholes.get((context, tag)) if number >= SERVED else None
        if whole is None and number >= STEPS and state.kept:
            whole = state.kept.get(number // SERVED % SERVED)  # as the rank's line numbers steps
        return (state.past, state.knows) if whole is None else (whole.past, whole.knows)

    def _wholes_of(
        self, state: Rank, number: int, _box: Box | None, _message: Message | None
    ) -> Sequence[Whole]:
        """What a completed operation is a part of; the program is not told of it by itself."""
        return state.apart.pop(number, ())

    @staticmethod
    def _tell_part(whole: Whole, number: int, completion: Completion) -> None:
        whole.past |= completion.past
        whole.knows = joined(whole.knows, completion.knows, completion.of)
        if whole.come is not None:
            whole.come[number] = completion.past, joined({}, completion.knows, completion.of)
        if completion.box is not None and completion.message is not None:
            completion.box.tell_arrival(completion.message)

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
