"""Ranks that have come to the passive agent of their host by themselves and are not served yet."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from ompy.engine.reactor import Loop
from ompy.runtime.connections.control import ControlError, Decoder, Frame, Kind, encode
from ompy.runtime.machines.acts import Keep, TurnAway
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.ranks.rank_server import peer_credentials
from ompy.runtime.ranks.ranks import AttachedRank

HELLO_TIMEOUT: Final = 5.0  # s; arbitrary: a rank says it as soon as it has connected
_HELLO_SIZE: Final = 4096  # bytes at once; arbitrary: a hello is smaller


class WaitingRanks:
    """Hears who has come, until the agent's machine has decided about each."""

    def __init__(
        self, loop: Loop, listener: socket.socket, tell: Callable[[Event], object]
    ) -> None:
        """Admit ranks from now on.

        Args:
            loop: watches the sockets.
            listener: where ranks of this host connect; belongs to this object.
            tell: gets who has come (CAME), and whose connection has ended (CLIENT_GONE).
        """
        self._loop = loop
        self._listener = listener
        self._tell = tell
        self._came = 0
        self._known: dict[int, tuple[socket.socket, AttachedRank]] = {}
        self._kept: dict[int, int] = {}  # of these, by rank
        listener.setblocking(False)
        loop.add_reader(listener, self._admit)

    def _admit(self) -> None:
        with suppress(BlockingIOError):
            connection, _ = self._listener.accept()
            connection.setblocking(False)
            if peer_credentials(connection)[1] == os.geteuid():
                _FirstWord(self._loop, connection, self._heard_hello)
            else:
                connection.close()

    def _heard_hello(self, connection: socket.socket, frame: Frame) -> None:
        """It has said who it is."""
        hello = {**frame.header, "pid": peer_credentials(connection)[0]}
        who, self._came = self._came, self._came + 1
        self._known[who] = connection, AttachedRank(hello["rank"], hello["local_rank"])
        self._tell(Event(Seen.CAME, who, None, hello))

    def keep_rank(self, act: Keep) -> None:
        """One of the job's, which waits for the others."""
        assert act.rank not in self._kept, f"rank {act.rank} is kept twice"
        connection, _ = self._known[act.who]
        with suppress(OSError):
            connection.send(encode(Kind.ALIVE))  # from now on our end is the job's
        self._kept[act.rank] = act.who
        self._loop.add_reader(connection, self._kept_one_gone, act.rank)

    def _kept_one_gone(self, rank: int) -> None:
        """It says nothing before it is admitted, so this is its end."""
        connection, _ = self._known.pop(self._kept.pop(rank))
        self._loop.remove_reader(connection)
        connection.close()
        self._tell(Event(Seen.CLIENT_GONE, rank))

    def turn_away(self, act: TurnAway) -> None:
        """One that is not wanted, or no longer."""
        connection, rank = self._known.pop(act.who)
        if self._kept.get(rank.rank) == act.who:
            del self._kept[rank.rank]
            self._loop.remove_reader(connection)
        with connection, suppress(OSError):
            if act.code is not None:
                connection.send(encode(Kind.REFUSED, {"code": act.code}, act.text.encode()))

    def hand_over(self) -> Iterator[tuple[socket.socket, AttachedRank]]:
        """All that were kept, with connections that are the caller's from then on."""
        kept, self._kept = self._kept, {}
        for who in kept.values():
            connection, rank = self._known.pop(who)
            self._loop.remove_reader(connection)
            yield connection, rank


class _FirstWord:
    """A connection of which nothing is known but its user, until it has said who it is."""

    def __init__(
        self,
        loop: Loop,
        connection: socket.socket,
        on_hello: Callable[[socket.socket, Frame], object],
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._on_hello = on_hello
        self._decoder = Decoder()
        self._timer = loop.call_later(HELLO_TIMEOUT, self._give_up)
        loop.add_reader(connection, self._readable)

    def _readable(self) -> None:
        try:
            data = self._connection.recv(_HELLO_SIZE)  # descriptors that come with it are dropped
            self._decoder.feed(data)
            frame = self._decoder.next()
        except BlockingIOError:
            return
        except (OSError, ControlError):
            data, frame = b"", None
        if frame is None and data:
            return
        if frame is None or frame.kind is not Kind.HELLO:
            self._give_up()
            return
        self._stop_watching()
        self._on_hello(self._connection, frame)

    def _stop_watching(self) -> None:
        self._timer.cancel()
        self._loop.remove_reader(self._connection)

    def _give_up(self) -> None:
        self._stop_watching()
        self._connection.close()
