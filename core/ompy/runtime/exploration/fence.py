"""Who goes on in a world that is explored: the scheduler asks when no rank has a turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ompy.runtime.exploration.exchange import Exchange

if TYPE_CHECKING:
    from ompy.engine.virtual_engine import VirtualEngine
    from ompy.runtime.simulation.stub import RankStub

# polls in a row of every rank that polls; arbitrary: a program that would do something else after
# that many has a reason that lies outside of the world
IDLE_MOST: Final = 200
# why a world is given up in which ranks wait for ever
UNNOTICED: Final = (
    "ranks wait that would notice elsewhere that another one has died or has revoked a "
    "communicator: that is not explored"
)


class Fence:
    """Lets ranks go on: those that have what they wait for, else by a choice.

    Attributes:
        exchange: of the world.
        at_first_choice: called before the first choice is made.
        coming: answers of who conducts the world that ranks get in a moment.
    """

    def __init__(
        self,
        exchange: Exchange,
        engines: Sequence[VirtualEngine],
        stubs: Sequence[RankStub],
    ) -> None:
        """Choose nothing yet.

        Args:
            exchange: of the world.
            engines: of its ranks; those that come later enter it.
            stubs: likewise.
        """
        self.exchange = exchange
        self.at_first_choice: Callable[[], object] | None = None
        self.coming = 0
        self._engines = engines
        self._stubs = stubs

    def pass_turn(self) -> bool:
        """Wake whoever can go on. False: time has to pass first, or nobody ever can.

        Raises:
            TimeoutError: ranks poll without end.
            Diverged: they do because something is to be chosen that does not come.
        """
        for rank in self.exchange.match_certain():
            self._engines[rank].wake()
        if self._wake_free():
            return True
        if any(not stub.done and not self.exchange.waits(stub.rank) for stub in self._stubs):
            return False  # it sleeps, or asks who conducts the world
        if self.coming:
            return False
        if self.exchange.idle_polls() > IDLE_MOST:
            self.exchange.see_it_goes_on()
            raise TimeoutError(f"polls without end: nothing has come in {IDLE_MOST} polls of each")
        if self.at_first_choice is not None and self.exchange.offers():
            call, self.at_first_choice = self.at_first_choice, None
            call()
        if not self.exchange.decide():
            return False
        for rank in self.exchange.match_certain():
            self._engines[rank].wake()
        self._wake_free()
        return True

    def _wake_free(self) -> bool:
        """Wake those that wait for nothing of the exchange any more."""
        found = False
        for stub in self._stubs:
            if stub.in_exchange and not self.exchange.waits(stub.rank):
                self._engines[stub.rank].wake()
                found = True
        return found
