"""How a window hears of commands: receives, and a poller that has them executed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ompy.data.constants import ANY_SOURCE
from ompy.data.convertor import GrowingConvertor
from ompy.data.errors import MPIError
from ompy.data.request import Request
from ompy.engine.base import Poller
from ompy.frameworks.osc_base.headers import COMMAND_TAG

if TYPE_CHECKING:
    from ompy.frameworks.osc_base.module import MessageOsc

BATCH: Final = 64  # commands in one round of polling; arbitrary: others want their turn


class Listener(Poller):
    """Receives commands and has them executed, from the engine's polling.

    One receive is for all members. Where a PML fails that because it cannot reach one of them,
    there is a receive for each of the others.
    """

    def __init__(self, module: MessageOsc) -> None:
        """For one window."""
        self._module = module
        self._communicator = module.window.communicator
        self._engine = self._communicator.context.engine
        self._incoming: dict[int, tuple[Request, GrowingConvertor]] = {}
        self._polled = False

    def listen(self, source: int = ANY_SOURCE) -> None:
        """Have the next command; there is none in a window that was given up after a death."""
        if self._communicator.revoked:
            return
        room = GrowingConvertor()
        request = self._communicator.pml.irecv(self._communicator, room, source, COMMAND_TAG)
        self._incoming[source] = request, room
        request.notify(self.wake)

    def wake(self) -> None:
        """There is something to do in the next round of polling."""
        if not self._polled:
            self._polled = True
            self._engine.add_poller(self)

    def close(self) -> None:
        """Have no more."""
        incoming, self._incoming = self._incoming, {}
        self._engine.remove_poller(self)
        self._polled = True  # whoever wakes it is too late
        for request, _ in incoming.values():
            if not request.complete:
                self._communicator.pml.cancel(request)

    def poll(self) -> int:
        """Execute what has come."""
        handled = 0
        ready = self._module.target.ready
        while ready and handled < BATCH:
            ready.popleft()()
            handled += 1
        while handled < BATCH:
            news = self._news()
            for source in news:
                self._take(source)
            handled += len(news)
            if not news:
                break
        handled += self._module.look_after_departed()
        if not self._module.watches() and not ready and not self._news():
            self._polled = False
            self._engine.remove_poller(self)
        return handled

    def arm(self) -> bool:
        """The rank may sleep if nothing has come."""
        return self.is_idle()

    def is_idle(self) -> bool:
        """Whether all that has come was executed."""
        return not self._module.target.ready and not self._news()

    def _news(self) -> list[int]:
        return [source for source, (request, _) in self._incoming.items() if request.complete]

    def _take(self, source: int) -> None:
        """Execute a command that has come, and have the next one."""
        request, room = self._incoming.pop(source)
        if request.error:
            if source == ANY_SOURCE:
                self._listen_to_each()
            return
        self.listen(source)
        view = room.view
        if view is not None:
            self._module.command_arrived(request.source, view)

    def _listen_to_each(self) -> None:
        for rank in range(self._communicator.size):
            if rank != self._communicator.rank:
                with suppress(MPIError):  # nothing comes from who cannot be reached
                    self.listen(rank)
