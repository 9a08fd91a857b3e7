"""What a recording hears of a rank's service to others, and how a replay has it done again.

A rank serves others from any of its calls. So where a command was served, between which of its
own calls, is not the program's to know. Who records that counts the rank's own steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from ompy.frameworks.osc_base.headers import Command, Kind

if TYPE_CHECKING:
    from ompy.frameworks.osc_base.module import MessageOsc

# what of a service is told: all that changes or reads memory, asks for a lock, or lets a call end
TOLD: Final = frozenset(Kind) - {Kind.FLUSH, Kind.UNLOCK}


class Service:
    """Hears what is served in windows whose every operation is a message.

    Attributes:
        orders: `may_serve` may say no. What was held back is tried again behind each `served`.
    """

    orders: ClassVar[bool] = False

    def opened(self, module: MessageOsc) -> None:
        """A window is there. With the rank's lock held, as the calls below but the next one."""

    def own_step(self) -> None:
        """The rank is about to use its own part, or its lock. Without the rank's lock held."""

    def closed(self, module: MessageOsc) -> None:
        """Nothing is served in it any more."""

    def may_serve(self, context: int, origin: int, command: Command) -> bool:
        """Whether a command is to be served now.

        Args:
            context: id of the window's communicator.
            origin: rank there.
            command: its first that was not served.
        """
        return True

    def served(self, context: int, origin: int, command: Command, *, begins: bool = False) -> None:
        """A command was served.

        Args:
            context: id of the window's communicator.
            origin: rank there.
            command: one of `TOLD`.
            begins: a put whose data are still to come; it is told again when they are there.
        """
