"""Serving ranks that nobody of ours has started: their ends, and a Finalize that waits."""

from __future__ import annotations

import socket
from typing import Any

from ompy.runtime.rank_server import RankServer, clean_up_after
from ompy.runtime.ranks import AttachedRank, Stage


class FarewellServer(RankServer):
    """Lets no rank out of MPI_Finalize before all of the job are in it.

    Another launcher takes a host down as soon as its own ranks have ended, and the coordinator
    may be there.
    """

    def __init__(self, *arguments: Any) -> None:
        """As `RankServer`."""
        super().__init__(*arguments)
        self._leaving: list[Any] = []
        self._released = False

    def let_in(self, rank: AttachedRank, connection: socket.socket) -> None:
        """Welcome an MPI process, which nobody has opened a door for."""
        self._ranks.append(rank)
        super().let_in(rank, connection)

    def release(self) -> None:
        """All ranks of the job have finalized."""
        self._released = True
        leaving, self._leaving = self._leaving, []
        for call in leaving:
            call.reply()

    def _finalized(self, call: Any) -> None:
        self._leaving.append(call)
        self._advance(call.rank, Stage.FINALIZED)
        if self._released:
            self.release()

    def _client_gone(self, rank: AttachedRank) -> None:
        """Its process has ended, how is not ours to know."""
        self._forget_paths(rank)
        rank.client = None
        clean_up_after(rank)
        self._events.lost(rank)
