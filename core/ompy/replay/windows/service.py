"""What a rank serves others in windows: written down, waited for, or done again without them.

`README.md` of the folder above says what a step is, and why between two of them nothing is served.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from ompy.frameworks.osc_base.headers import Command, Kind, follows, parsed
from ompy.frameworks.osc_base.service import Service
from ompy.replay.data_log import Served, served_bytes
from ompy.replay.looking import look_until

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.frameworks.osc_base.module import MessageOsc
    from ompy.replay.data_log import Streams
    from ompy.replay.follower import Follower
    from ompy.replay.recorder import Recorder

LOOKS_S: Final = 0.0002  # s; arbitrary: between two looks at what others have asked for
# what a replay of the job has in order: all that hangs on who was first
ORDERED: Final = frozenset((
    Kind.PUT, Kind.GET, Kind.ACCUMULATE, Kind.FETCH, Kind.SWAP, Kind.LOCK, Kind.LOCK_SHARED,
))  # fmt: skip
# what a rank alone needs of the others: all that changes its memory, or lets its calls end
NEEDED: Final = frozenset((
    Kind.PUT, Kind.ACCUMULATE, Kind.FETCH, Kind.SWAP, Kind.POST, Kind.COMPLETE, Kind.REFUSED,
))  # fmt: skip
THREADED: Final = "several threads serve others there, in an order that is not recorded"


class StepCounter(Service):
    """Counts the steps of the rank.

    Attributes:
        step: so many are over.
    """

    def __init__(self) -> None:
        self.step = 0

    def own_step(self) -> None:
        """One is over."""
        self.end_step()

    def end_step(self) -> None:
        """One is over."""
        self.step += 1


class RecordedService(StepCounter):
    """Writes down what is served, and between which steps.

    Attributes:
        windows: that there are.
    """

    def __init__(self, recorder: Recorder) -> None:
        """Nothing is served yet."""
        super().__init__()
        self._recorder = recorder
        self.windows = 0

    def opened(self, module: MessageOsc) -> None:
        """Count it."""
        self.windows += 1

    def closed(self, module: MessageOsc) -> None:
        """Count it no more."""
        self.windows -= 1

    def served(self, context: int, origin: int, command: Command, *, begins: bool = False) -> None:
        """Write it."""
        body = memoryview(command.packed())
        self._recorder.write_data(served_bytes(Served(begins, self.step, context, origin, body)))


class OrderedService(StepCounter):
    """Has commands served in the order of the recording, and between the same steps.

    A step waits for what was served before its end: the commands come, for what their origins did
    before had come, too. One that was served later is held back.
    """

    orders: ClassVar[bool] = True

    def __init__(self, served: Iterable[Served], engine: Engine, follower: Follower) -> None:
        """Take the recording's order.

        Args:
            served: by the rank.
            engine: of the rank.
            follower: hears of another order.
        """
        super().__init__()
        self._engine = engine
        self._follower = follower
        self._open: dict[int, MessageOsc] = {}
        self._left: dict[int, deque[tuple[int, int, Command]]] = {}
        # large puts: the step in which the data were there, and those that are there now
        self._due_data: dict[int, deque[tuple[int, tuple[int, int]]]] = {}
        self._there: set[tuple[int, int, int]] = set()
        for begins, step, context, origin, body in served:
            command = parsed(body)
            if command.kind is Kind.PUT and follows(command) and not begins:
                due = self._due_data.setdefault(context, deque())
                due.append((step, (origin, command.tag)))
            elif command.kind in ORDERED:
                left = self._left.setdefault(context, deque())
                left.append((step, origin, command))

    def opened(self, module: MessageOsc) -> None:
        """Wait for what is served there from now on."""
        self._open[module.window.communicator.context_id] = module

    def closed(self, module: MessageOsc) -> None:
        """Wait no more."""
        self._open.pop(module.window.communicator.context_id, None)

    def may_serve(self, context: int, origin: int, command: Command) -> bool:
        """It is the next one, and was served by now; behind the recording's end all are."""
        left = self._left.get(context)
        if not left or command.kind not in ORDERED:
            return True
        step, next_origin, expected = left[0]
        if next_origin != origin or step > self.step:
            return False
        if (expected.kind, expected.tag) != (command.kind, command.tag):
            now, then = command.kind.name, expected.kind.name
            self._follower.served_differ(origin, f"{now} {command.tag}", f"{then} {expected.tag}")
        return True

    def served(self, context: int, origin: int, command: Command, *, begins: bool = False) -> None:
        """The next one may be served."""
        if command.kind is Kind.PUT and follows(command) and not begins:
            self._there.add((context, origin, command.tag))
        elif command.kind in ORDERED:
            left = self._left.get(context)
            if left:
                left.popleft()

    def end_step(self) -> None:
        """Wait until all is served that was."""
        look_until(self._engine, lambda: not any(map(self._lacks, self._open)), LOOKS_S)
        self.step += 1
        with self._engine.lock:
            for module in self._open.values():
                module.target.try_again()

    def _lacks(self, context: int) -> bool:
        """Whether something was served in a window by now that is not."""
        left = self._left.get(context)
        if left and left[0][0] <= self.step:
            return True
        due = self._due_data.get(context, deque())
        while due and due[0][0] <= self.step and (context, *due[0][1]) in self._there:
            self._there.discard((context, *due.popleft()[1]))
        return bool(due) and due[0][0] <= self.step


class AloneService(StepCounter):
    """Does again what others had done in the rank's memory, between the same steps."""

    def __init__(self, streams: Streams, engine: Engine) -> None:
        """Nothing is done yet.

        Args:
            streams: what the rank was sent, and what it served.
            engine: of the rank.
        """
        super().__init__()
        self._streams = streams
        self._engine = engine
        self._open: dict[int, MessageOsc] = {}
        self._left: deque[tuple[Served, Command]] = deque()
        for served in streams.served:
            command = parsed(served.command)
            if command.kind in NEEDED and not served.begins:
                self._left.append((served, command))

    def opened(self, module: MessageOsc) -> None:
        """What was done there can be done."""
        self._open[module.window.communicator.context_id] = module

    def closed(self, module: MessageOsc) -> None:
        """Nothing can be done there."""
        self._open.pop(module.window.communicator.context_id, None)

    def end_step(self) -> None:
        """Do what was done before its end, if it could not be done in it."""
        with self._engine.lock:
            self.serve()
            while self._left and self._left[0][0].step <= self.step:
                self._left.popleft()  # of a window that is no more
                self.serve()
        self.step += 1

    def serve(self) -> int:
        """Do what was done by now; how much that was. With the rank's lock held."""
        done = 0
        while self._left and self._left[0][0].step <= self.step:
            served, command = self._left[0]
            module = self._open.get(served.context)
            if module is None:
                break
            origin = served.origin
            if command.kind is Kind.REFUSED and command.tag not in module.peer(origin).awaited:
                break  # the operation begins later in this step
            self._left.popleft()
            done += 1
            module.take_command(origin, self._with_data(served, command))
        return done

    def _with_data(self, served: Served, command: Command) -> Command:
        """With the data that had followed it."""
        if not follows(command) or command.kind not in NEEDED - {Kind.REFUSED}:
            return command
        found = self._streams.next_message(served.context, served.origin, command.tag, takes=True)
        if found is None or found.data is None:
            return command
        return command._replace(data=found.data)
