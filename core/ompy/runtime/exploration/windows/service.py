"""Windows of an explored world: whom their parts serve next, and who reads in vain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ompy.frameworks.direct import DEATHS, EXPOSURE
from ompy.frameworks.osc_base.headers import COMMAND_TAG, Kind
from ompy.runtime.exploration.boxes import Box, Message, Operation, Receive
from ompy.runtime.exploration.events import DONE, SEES, SERVE, Event, Impossible, Value
from ompy.runtime.exploration.matching.accesses import Access, Accesses, Runs
from ompy.runtime.exploration.operations import Operations
from ompy.runtime.exploration.waits import Completion, Offer, Rank, Whole
from ompy.runtime.exploration.windows.box import Asked, WindowBox, command_asked
from ompy.runtime.exploration.windows.parts import FREE, Parts, command_of
from ompy.runtime.exploration.windows.turns import TURNS, TurnBox, turn_command

# commands that end a call of the rank that they are for: its program depends on them
_TOLD = frozenset({Kind.POST, Kind.COMPLETE, Kind.REFUSED})


class Windows(Operations):
    """What is asked of parts of windows.

    Attributes:
        parts: what is known of them; shared by all worlds of a search.
        accesses: to what ranks share beside them.
        deaths: a rank has died, or has revoked a communicator: others wait for ever that would not.
        polls: how often in a row a poll finds nothing although it could find something.
        script: what is chosen where.
        bounded: a poll had to find something because it had found nothing as often as it may.
    """

    def __init__(self, size: int, polls: int, parts: Parts | None = None) -> None:
        """Nothing is asked yet.

        Args:
            size: ranks.
            polls: how often in a row a poll finds nothing although it could find something.
            parts: what is known of windows; None if nothing is.
        """
        super().__init__(size)
        self.parts = parts if parts is not None else Parts()
        self.polls = polls
        self.bounded = False
        self.script: Mapping[Operation, Value] = {}
        self._reads_of: Mapping[Operation, Value] | None = None
        self._reads: dict[Operation, list[Operation]] = {}  # by choice: reads to come before it
        self.accesses = Accesses()
        self.deaths = False
        self._never_loaded: set[int] = set()  # windows, by the context of their communicator
        self._windows: list[WindowBox] = []
        self._turn_box: TurnBox | None = None  # one of these
        self._commands: dict[Operation, tuple[WindowBox, Asked]] = {}  # by choice

    def command_of_choice(self, key: Operation) -> tuple[WindowBox, Asked]:
        """What was chosen to be served, and where."""
        return self._commands[key]

    def idle_polls(self) -> int:
        """How often those that poll have found nothing since anything happened, the least."""
        polling = [state.idle for state in self._ranks if state.wait and state.wait.polls]
        polling += [
            self._ranks[message.sender[0]].spin.count
            for box in self._windows
            for message, asked in box.heads()
            if box.waits(asked)
        ]
        return min(polling, default=0)

    def ask_turn(self, operation: Operation, name: str, *, changes: bool, site: str = "") -> None:
        """A rank wants its turn at a name, which has one order for all ranks.

        Args:
            operation: complete when it is the rank's turn.
            name: in words.
            changes: the rank changes what others find.
            site: where in the program.
        """
        if self._turn_box is None:
            self._turn_box = TurnBox()
            self._windows.append(self._turn_box)
        box, (rank, number) = self._turn_box, operation
        state = self._ranks[rank]
        self._begin(rank, number, inner=True)
        command = turn_command(name, changes=changes)
        made = Message(
            operation,
            rank,
            COMMAND_TAG,
            command.packed(),
            synchronous=False,
            past=state.past,
            site=site,
        )
        asked = box.asked[operation] = command_asked(made.data, self.parts.class_of(TURNS, command))
        state.spin.note_command(TURNS, command, asked, site, max(self.polls, 1))
        box.add_message(made)
        if asked.of == FREE and not box.waits(asked):
            self._serve_message(box, box.listening(), made)

    def note_never_loaded(self, context: int) -> None:
        """No rank loads from its own part of a window: it is the library's own."""
        self._never_loaded.add(context)

    def note_untried(self, what: str) -> None:
        """Something matters of which not all orders are tried."""
        self.parts.untried.add(what)
        self.deaths |= what == DEATHS

    def note_access(
        self, rank: int, number: int, kind: str, what: str, runs: Runs, writes: bool
    ) -> None:
        """A rank accesses something that others may, too; arguments as of `Accesses`."""
        state = self._ranks[rank]
        made = Access(rank, number, runs, writes, state.past)
        self.parts.untried |= self.accesses.add_access(kind, what, made, state.knows)

    def _make_box(self, place: tuple[int, int], *, served: bool) -> Box:
        if not served:
            return Box(place[1])
        made = WindowBox(*place)
        self._windows.append(made)
        return made

    # what ranks ask

    def _note_message(self, place: tuple[int, int], message: Message, *, served: bool) -> None:
        """A rank sends: it asks a part of a window, or answers, or does something else."""
        rank, tag = message.sender[0], message.tag
        if not served or tag < 0:
            self._ranks[rank].spin.reset()
            return
        own = self._boxes.get((place[0], rank))
        if tag == COMMAND_TAG:
            command = command_of(message.data)
            if command.kind is Kind.REFUSED:
                self._note_answer(own, place[1], command.tag + 1, message)
            box = self._boxes[place]
            assert isinstance(box, WindowBox), "it is served"
            asked = command_asked(message.data, self.parts.class_of(place, command))
            box.asked[message.sender] = asked
            most = max(self.polls, 1)
            self._ranks[rank].spin.note_command(place, command, asked, message.site, most)
        elif tag % 2:
            self._note_answer(own, place[1], tag, message)

    def _note_answer(self, own: Box | None, to: int, tag: int, message: Message) -> None:
        if not isinstance(own, WindowBox):
            return
        past, changed = own.answer(to, tag, message.data)
        if past is not None:
            message.past = past
        if changed:
            self._ranks[to].spin.reset()

    def _wholes_of(
        self, state: Rank, number: int, box: Box | None, message: Message | None
    ) -> Sequence[Whole]:
        """What a completed operation is a part of: the end of another rank's epoch, of its own."""
        if isinstance(box, WindowBox) and message is not None and message.tag == COMMAND_TAG:
            if command_of(message.data).kind is Kind.COMPLETE:
                whole = state.wholes.get((box.context, EXPOSURE))
                return () if whole is None else (whole,)
            return ()
        return super()._wholes_of(state, number, box, message)

    def _is_heeded(self, box: Box | None, message: Message | None) -> bool:
        """Whether the program of the rank that gets a message can tell.

        What a part of a window is asked for makes no difference to it, but for ends of its calls.
        """
        if not isinstance(box, WindowBox) or message is None or message.tag < 0:
            return True
        if self.parts.heeded:
            return True
        if message.tag == COMMAND_TAG:
            return command_of(message.data).kind in _TOLD
        return bool(message.tag % 2)  # else they are data for the part

    # what can be chosen

    def _command_offers(self) -> Iterator[Offer]:
        """Of each class the commands that can be its next; of ranks that spin, if no other can."""
        for box in self._windows:
            receive = box.listening()
            if receive is None:
                continue
            found: dict[Operation, list[tuple[bool, Value, Message]]] = {}
            for message, asked in box.heads():
                waits = box.waits(asked)
                if asked.of != FREE or waits:
                    key, value = box.choice_of(asked, message.sender)
                    if value[0] == SEES or not self._is_held(key):
                        found.setdefault(key, []).append((waits, value, message))
            for key, of in found.items():
                of.sort(key=lambda one: one[0])
                values = {value: (box, receive, one) for _, value, one in of}
                spins = [self._ranks[one.sender[0]].spin.count for _, _, one in of]
                yield Offer(key, SERVE, values, spins[0] if of[0][0] else -1)

    def see_it_can_be(self) -> None:
        """Nothing goes on: look whether a change waits for a read that is to come before it.

        The read was seen with all that it needs. So something of that needs the change.

        Raises:
            Impossible: it does.
        """
        for box in self._windows:
            for message, asked in box.heads():
                key, value = box.choice_of(asked, message.sender)
                if asked.of != FREE and value[0] != SEES and self._is_held(key):
                    raise Impossible(f"what is to come before {key} needs it")

    def _is_held(self, key: Operation) -> bool:
        """Whether the next of a class waits for reads that are to be served before it."""
        if self._reads_of is not self.script:
            self._reads_of, self._reads = self.script, {}
            for read, value in self.script.items():
                if value[0] == SEES:
                    self._reads.setdefault((value[1], value[2]), []).append(read)
        return any(read not in self._commands for read in self._reads.get(key, ()))

    def _choose_command(
        self, key: Operation, value: Value, box: WindowBox, receive: Receive, message: Message
    ) -> None:
        """What a part serves next of a class."""
        asked = box.asked[message.sender]
        spins = box.waits(asked)
        spin = self._ranks[message.sender[0]].spin
        spin.count = spin.count + 1 if spins else 0
        number = self._new_number()
        past = self._serve_message(box, receive, message, number) & ~(1 << number)
        site, sent = receive.site, message.site
        self.events.append(Event(number, key, SERVE, value, past, 0, site, spins, sent=sent))
        self._commands[key] = box, asked

    def _serve_message(
        self, box: WindowBox, receive: Receive, message: Message, event: int = -1
    ) -> int:
        """A part serves what it was asked for. Returns the events that this depends on."""
        asked = box.asked[message.sender]
        self.bounded |= asked.again is not None and not box.waits(asked)
        self.parts.loaded |= box.context not in self._never_loaded and box.changes_beside(message)
        past = box.serve(message, event)
        if isinstance(box, TurnBox):
            box.take_message(receive, message)
            rank, number = message.sender
            what = (DONE, number, 0, 0, None)
            self._finish(message.sender, Completion(what, past, None, None, (rank, 0), {}))
        else:
            self._take(box, receive, message, past)
        return past
