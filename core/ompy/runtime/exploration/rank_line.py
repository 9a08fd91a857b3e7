"""A rank's end of a world that is explored: what it begins goes along with its next call.

What has a choice has a number, the same in every world in which the rank has done the same so far.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from random import Random
from typing import Any, ClassVar

from ompy.frameworks.direct import Arrival, DirectLine, numbers_of, waits_as_standard
from ompy.frameworks.pml import BUFFERED, READY, SYNCHRONOUS
from ompy.runtime.exploration.events import DONE, FROM
from ompy.runtime.exploration.knowledge import SERVED
from ompy.runtime.simulation.remote import Conducted, RemoteEngine

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
        world.on_direct = self._hear

    def on_complete(self, told: Callable[[int, Arrival], object]) -> None:
        """Have completions told."""
        self._told = told

    def record_call(self, event: tuple[Any, ...]) -> None:
        """An entry of the record of calls: it goes along with the next call."""
        self._world.record_call(event)

    def new_number(self, context: int = 0) -> int:
        """Of the rank's next operation. A thread beside the main one ends the world.

        What a rank does for others has numbers of its own in each communicator: when it comes to
        that among its own calls makes no difference to the numbers of either.

        Args:
            context: id of the communicator; 0 if it is in none.
        """
        if self.explores and threading.get_ident() != self._thread:
            self._world.refuse_threads()
        if self.explores and self.serves and context:
            self._served[context] = self._served.get(context, 0) + 1
            return context * SERVED + self._served[context]
        self._number += 1
        return self._number

    def send(
        self, to: tuple[int, int], source: int, tag: int, data: bytes, mode: int, *, served: bool
    ) -> int:
        """Send."""
        number, site = self.new_number(to[0]), site_of_program()
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
        number, site = self.new_number(context), site_of_program()
        self._world.later("direct_receive", number, context, source, tag, served, site)
        return number

    def cancel(self, number: int) -> bool:
        """Cancel a receive."""
        self._found = ()
        asks = self.new_number(), number, site_of_program()
        while not self._found:  # else it was told of something else meanwhile
            if self._world.call("direct_cancel", *asks) is False:
                return False
        return self._found[0] != FROM

    def look(
        self, context: int, source: int, tag: int, *, takes: bool, waits: bool
    ) -> Arrival | None:
        """Probe."""
        number, site = self.new_number(), site_of_program()
        self._found = ()
        while not self._found:  # else it was told of something else meanwhile
            self._world.call("direct_look", number, context, source, tag, takes, waits, site)
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

    def poll(self) -> None:
        """Give the turn away, and hear what is complete."""
        self._world.call("direct_poll", self.new_number(), site_of_program(), False)

    def poll_further(self) -> bool:
        """Hear whether another operation completes at the same time as what was told of last."""
        self._told_of = 0
        self._world.call("direct_poll", self.new_number(), site_of_program(), True)
        return self._told_of > 0

    def _hear(self, kind: str, number: int, *said: Any) -> None:
        if kind == DONE:
            self._told_of = number
            source, tag, data = said
            self._told(number, Arrival(source, tag, len(data or b""), data))
        else:
            self._found = (kind, *said)


class DirectEngine(RemoteEngine):
    """Drives a rank whose messages the world matches: it waits for these, not for packets."""

    __slots__ = ("_direct",)

    def __init__(self, world: Conducted, line: RankLine, random: Random, breaks: Random) -> None:
        """Drive it; the rest as for a `RemoteEngine`."""
        super().__init__(world, random, breaks)
        self._direct = line

    def progress(self) -> int:
        """Let the world say what is complete. What passes is a turn, and no time."""
        self._direct.poll()
        return self.poll_all()

    def look_further(self) -> bool:
        """Let the world say whether more is complete."""
        if not self._direct.explores or not self._direct.poll_further():
            return False
        self.poll_all()
        return True

    def poll_all(self) -> int:
        """Do what others have asked for."""
        before, self._direct.serves = self._direct.serves, True
        try:
            return super().poll_all()
        finally:
            self._direct.serves = before

    def pause(self, reason: object) -> None:
        """Give the turn away until something that is waited for is complete."""
        self.reason = reason
        self._direct.wait_for(reason)
        self.reason = None


def site_of_program() -> str:
    """Where the program is, as file:line; empty if nothing of it is below."""
    frame = sys._getframe(1)  # noqa: SLF001 - its only name
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
