"""A rank's end of a world that is explored: what it begins goes along with its next call.

What has a choice has a number, the same in every world in which the rank has done the same so far.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from ompy.compiled import ccall, cclass
from ompy.frameworks.collectives.call_order import call_of_tag
from ompy.frameworks.direct import (
    REQUESTS,
    TESTED,
    Arrival,
    DirectLine,
    Whole,
    numbers_of,
    waits_as_standard,
)
from ompy.frameworks.pml import BUFFERED, READY, SYNCHRONOUS
from ompy.runtime.exploration.events import AGAIN, DONE, FROM
from ompy.runtime.exploration.matching.knowledge import SERVED
from ompy.runtime.exploration.meetings import Meetings, both_complete
from ompy.runtime.simulation.conducted import Conducted, RemoteEngine

if TYPE_CHECKING:
    from ompy.data.request import Request
    from ompy.frameworks.collectives.coll_selection import SelectedColl
    from ompy.frameworks.communicator import Communicator

_OURS = frozenset({"ompy", "ompy_components", "mpi4py", "importlib", "runpy"})


class RankLine(DirectLine):
    """Speaks to the world.

    Attributes:
        serves: the rank does now what others have asked of it.
    """

    explores: ClassVar[bool] = True

    def __init__(self, world: Conducted, *, buffers: bool) -> None:
        """Nothing is under way.

        Args:
            world: the rank's line to it.
            buffers: a standard send is complete at once.
        """
        self._world = world
        self._buffers = buffers
        self.serves = False
        self._number = 0
        self._served: dict[int, int] = {}  # operations in service of others, by context id
        self._told_of = 0  # the operation whose completion was told last
        self._thread = threading.get_ident()
        self._found: tuple[Any, ...] = ()
        self._last: tuple[int, object] = (0, None)  # wait with a choice, and for what
        self._told: Callable[[int, Arrival], object] = lambda _number, _arrival: None
        self._wholes: dict[tuple[int, int], Whole] = {}  # under way, by context id and tag
        self._ending: dict[int, Whole] = {}  # that the program was not told of
        self._steps: dict[int, int] = {}  # of each whole: operations in service of it
        self._stepping: Whole | None = None  # what is begun now is a step of it
        self._requests = 0  # that no tag names
        self._again = False  # a poll is not answered: there is work to do first
        self._advance: Callable[[], object] = int
        self._meetings = None if buffers else Meetings(self._meet)
        world.on_direct = self._hear

    def on_parts(self, advance: Callable[[], object]) -> None:
        """Have the work done that messages bring with them, between two questions."""
        self._advance = advance

    def on_complete(self, told: Callable[[int, Arrival], object]) -> None:
        """Have completions told."""
        self._told = told

    def record_call(self, event: tuple[Any, ...]) -> None:
        """An entry of the record of calls: it goes along with the next call."""
        self._world.record_call(event)

    def begin_whole(
        self, context: int, tag: int, parts: Sequence[int] = (), *, kept: bool = False
    ) -> Whole:
        """Messages with a tag are one operation from now on, and receives with these numbers."""
        return self._begin_whole(context, tag, parts, kept=kept, asked=False)

    def _begin_whole(
        self, context: int, tag: int, parts: Sequence[int], *, kept: bool, asked: bool
    ) -> Whole:
        whole = Whole(self.new_number())
        self._wholes[context, tag] = self._ending[whole.number] = whole
        how = (kept, asked) if kept or asked else ()
        self._world.later("direct_whole", whole.number, context, tag, list(parts), *how)
        return whole

    def begin_parts(
        self, context: int, of: Request, *, kept: bool = False, asked: bool = False
    ) -> Whole:
        """Messages of which `add_parts` will tell are one operation from now on."""
        self._requests += 1
        whole = self._begin_whole(context, REQUESTS - self._requests, (), kept=kept, asked=asked)
        whole.of = of
        of.notify(partial(self.end_whole, whole))
        return whole

    def add_parts(
        self, whole: Whole, numbers: Sequence[int], *, of: Whole | None = None, now: bool = False
    ) -> None:
        """These messages belong to an operation, too."""
        among = 0 if of is None else of.number
        self._world.later("direct_parts", whole.number, list(numbers), among, now)

    def note_access(
        self, kind: str, what: str, runs: Sequence[tuple[int, int]], *, writes: bool
    ) -> int:
        """The program accesses something that others may, too. Returns a number for it."""
        number = self.new_number()
        self._world.later("direct_access", number, kind, what, list(runs), writes)
        return number

    def extend_access(self, number: int) -> None:
        """That goes on, until `end_access`."""
        self._world.later("direct_until", number)

    def end_access(self, number: int) -> None:
        """The program has been told that it has ended: what it begins from now on is behind."""
        self._world.later("direct_until", number, self._number)

    def note_never_loaded(self, context: int) -> None:
        """No rank loads from its own part of a window, whatever others do to it."""
        self._world.later("direct_never_loaded", context)

    def ask_turn(self, name: str, *, changes: bool) -> Whole:
        """Complete when it is the rank's turn at a name."""
        whole = Whole(self.new_number())
        self._ending[whole.number] = whole
        self._world.later("direct_turn", whole.number, name, changes, site_of_program())
        return whole

    def note_untried(self, what: str) -> None:
        """Something matters now of which not all orders are tried."""
        self._world.later("direct_untried", what)

    @contextmanager
    def stepping(self, whole: Whole) -> Iterator[None]:
        """What is begun within follows from the messages of an operation alone."""
        before, self._stepping = self._stepping, whole
        try:
            yield
        finally:
            self._stepping = before

    def look_for(self, whole: Whole) -> bool:
        """Whether an operation is complete, as the world says."""
        self._poll(further=False, only=whole.number)
        return whole.complete

    def end_whole(self, whole: Whole) -> None:
        """The last of them is complete."""
        self._wholes = {key: one for key, one in self._wholes.items() if one is not whole}
        self._world.later("direct_whole", whole.number)

    def watch_calls(self, coll: SelectedColl) -> None:
        """The world says when a program is told of the end of nonblocking collective calls."""
        begin, communicator = coll.begin_operation, coll.communicator
        if self._meetings is not None:
            self._meetings.watch_calls(coll)

        def begun(operation: str, tag: int, *others: Any) -> Request:
            if call_of_tag(tag) not in TESTED:
                return begin(operation, tag, *others)
            return self.watch(communicator, tag, partial(begin, operation, tag, *others))

        vars(coll)["begin_operation"] = begun

    def watch(self, communicator: Communicator, tag: int, begin: Callable[[], Request]) -> Request:
        """Begin an operation of which the program is told when the world says so."""
        if not self.explores:
            return begin()
        whole = self.begin_whole(communicator.context_id, tag)
        meeting = None
        if self._meetings is not None and call_of_tag(tag) in TESTED:
            meeting = self._meetings.begin_call(communicator, tag)
        if meeting is not None:
            self.add_parts(whole, [meeting.number])
            whole.meeting = meeting
        request = whole.of = begin()
        both_complete(request, meeting, partial(self.end_whole, whole))
        return whole

    def enter_call(self, communicator: Communicator) -> None:
        """A rank has begun a blocking collective call; it may have to wait for all members."""
        if self._meetings is not None:
            self._meetings.enter_call(communicator)

    def _meet(self, communicator: Communicator, call: tuple[int, ...]) -> Whole:
        """The rank has come to a collective call; complete when all members have."""
        whole = Whole(self.new_number())
        self._ending[whole.number] = whole
        self._world.later("direct_meet", whole.number, call, communicator.size)
        return whole

    def watch_begun(self, context: int, begun: Request, parts: Sequence[int] = ()) -> Request:
        """The same of one that has begun."""
        if not self.explores:
            return begun
        self._requests += 1
        whole = self.begin_whole(context, REQUESTS - self._requests, parts)
        whole.of = begun
        begun.notify(partial(self.end_whole, whole))
        return whole

    def new_number(self, context: int = 0, tag: int = 0) -> int:
        """Of the rank's next operation. A thread beside the main one ends the world.

        What a rank does for others has numbers of its own in each communicator: when it comes to
        that among its own calls makes no difference to the numbers of either.

        Args:
            context: id of the communicator; 0 if it is in none.
            tag: of its message. Steps of one nonblocking call have numbers of their own, too.
        """
        if self.explores and threading.get_ident() != self._thread:
            self._world.refuse_threads()
        whole = self._stepping
        if whole is None and self.serves:
            whole = self._wholes.get((context, tag))
        if whole is not None:
            step = self._steps[whole.number] = self._steps.get(whole.number, 0) + 1
            number: int = ((context + 1) * SERVED + whole.number) * SERVED + step
            return number
        if self.explores and self.serves and context:
            self._served[context] = self._served.get(context, 0) + 1
            return context * SERVED + self._served[context]
        self._number += 1
        return self._number

    def send(
        self, to: tuple[int, int], source: int, tag: int, data: bytes, mode: int, *, served: bool
    ) -> int:
        """Send."""
        number, site = self.new_number(to[0], tag), site_of_program()
        synchronous = mode == SYNCHRONOUS
        self._world.later(
            "direct_send",
            number,
            to,
            source,
            tag,
            data,
            synchronous,
            served,
            mode == BUFFERED,
            site,
            mode == READY,
        )
        complete = served or self._buffers or not waits_as_standard(tag)
        return number if synchronous or not complete else 0

    def receive(self, context: int, source: int, tag: int, *, served: bool) -> int:
        """Post a receive."""
        number, site = self.new_number(context, tag), site_of_program()
        self._world.later("direct_receive", number, context, source, tag, served, site)
        return number

    def cancel(self, number: int) -> bool:
        """Cancel a receive."""
        self._found = ()
        asks = self.new_number(), number, site_of_program()
        while not self._found:  # else it was told of something else meanwhile
            if self._world.call("direct_cancel", *asks) is False:
                return False
            if not self._found:
                self._advance()
        return self._found[0] != FROM

    def look(
        self, context: int, source: int, tag: int, *, takes: bool, waits: bool
    ) -> Arrival | None:
        """Probe."""
        number, site = self.new_number(), site_of_program()
        self._found = ()
        while not self._found:  # else it was told of something else meanwhile
            self._world.call("direct_look", number, context, source, tag, takes, waits, site)
            if not self._found:
                self._advance()
        kind, *found = self._found
        if kind != FROM:
            return None
        at, tag, length, *data = found
        return Arrival(at, tag, length, data[0] if data else None)

    def forget(self, context: int) -> None:
        """A communicator is freed."""
        self._world.later("direct_forget", context)

    def wait_for(self, reason: object) -> None:
        """Give the turn away until something of that is complete."""
        wanted, others = numbers_of(reason)
        number = 0
        if len(wanted) > 1 or (wanted and others):
            if reason is not self._last[1]:  # not the same once more, after other news
                self._last = (self.new_number(), reason)
            number = self._last[0]
        self._world.call("direct_wait", number, list(wanted), others, site_of_program())

    def poll(self) -> bool:
        """Give the turn away, and hear what is complete. Whether an operation was told of."""
        return self._poll(further=False)

    def poll_further(self) -> bool:
        """Hear whether another operation completes at the same time as what was told of last."""
        return self._poll(further=True)

    def _poll(self, *, further: bool, only: int = 0) -> bool:
        number, site = self.new_number(), site_of_program()
        self._again = True
        while self._again:
            self._again, self._told_of = False, 0
            self._world.call("direct_poll", number, site, further, *([only] if only else []))
            if self._again:
                self._advance()
        return self._told_of > 0

    def _hear(self, kind: str, number: int, *said: Any) -> None:
        if kind == AGAIN:
            self._again = True
        elif kind == DONE and number in self._ending:
            self._told_of = number
            self._ending.pop(number).finish()
        elif kind == DONE:
            self._told_of = number
            source, tag, data = said
            self._told(number, Arrival(source, tag, len(data or b""), data))
        else:
            self._found = (kind, *said)


@cclass
class DirectEngine(RemoteEngine):
    """Drives a rank whose messages the world matches: it waits for these, not for packets."""

    _direct: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, world: Conducted, line: RankLine, random: Random, breaks: Random) -> None:
        """Drive it; the rest as for a `RemoteEngine`."""
        RemoteEngine.__init__(self, world, random, breaks)
        self._direct = line
        line.on_parts(self.poll_all)

    @ccall
    def progress(self) -> int:
        """Let the world say what is complete. What passes is a turn, and no time."""
        told: int = self._direct.poll()
        return self.poll_all() + told

    @ccall
    def look_further(self) -> bool:
        """Let the world say whether more is complete."""
        if not self._direct.explores or not self._direct.poll_further():
            return False
        self.poll_all()
        return True

    @ccall
    def poll_all(self) -> int:
        """Do what others have asked for."""
        before, self._direct.serves = self._direct.serves, True
        try:
            return RemoteEngine.poll_all(self)
        finally:
            self._direct.serves = before

    def pause(self, reason: object) -> None:
        """Give the turn away until something that is waited for is complete."""
        self.reason = reason
        self._direct.wait_for(reason)
        self.reason = None


def site_of_program() -> str:
    """Where the program is, as file:line; empty if nothing of it is below."""
    frame = sys._getframe()  # noqa: SLF001 - its only name; compiled, this has none of its own
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _OURS:
            path = frame.f_code.co_filename
            return "" if path.startswith("<frozen") else f"{path}:{frame.f_lineno}"
        found = frame.f_back
        if found is None:
            return ""
        frame = found
    return ""
