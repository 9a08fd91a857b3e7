"""What a rank tells a world that is explored, and gets no answer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ompy.runtime.exploration.exchange import Exchange


class ToldCalls:
    """A part of the stub of a rank.

    Attributes:
        rank: which.
    """

    rank: int

    @property
    def exchange(self) -> Exchange:
        """What matches messages."""
        raise NotImplementedError

    def do_direct_whole(self, *said: Any) -> None:
        """Several messages become one operation, or it is complete."""
        self.exchange.note_whole(self.rank, *said)

    def do_direct_parts(self, *said: Any) -> None:
        """Messages belong to an operation."""
        self.exchange.add_parts(self.rank, *said)

    def do_direct_access(self, *said: Any) -> None:
        """The rank accesses something that others may, too."""
        self.exchange.note_access(self.rank, *said)

    def do_direct_until(self, *said: Any) -> None:
        """That goes on, or has ended."""
        self.exchange.accesses.extend_access(self.rank, *said)

    def do_direct_never_loaded(self, context: int) -> None:
        """No rank loads from its own part of a window."""
        self.exchange.note_never_loaded(context)

    def do_direct_turn(self, number: int, name: str, changes: bool, site: str) -> None:
        """The rank wants its turn at a name."""
        self.exchange.ask_turn((self.rank, number), name, changes=changes, site=site)

    def do_direct_untried(self, what: str) -> None:
        """Something matters of which not all orders are tried."""
        self.exchange.note_untried(what)

    def do_direct_meet(self, number: int, call: tuple[int, ...], members: int) -> None:
        """The rank has come to a collective call."""
        self.exchange.enter_call((self.rank, number), call, members)

    def do_direct_forget(self, context: int) -> None:
        """A communicator is freed."""
        self.exchange.forget(context, self.rank)
