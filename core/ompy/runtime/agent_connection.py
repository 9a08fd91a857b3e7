"""The connection to an agent one has started: its messages, its heartbeats and its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from ompy.engine.reactor import Loop
from ompy.frameworks.plm import AgentLink
from ompy.runtime.channel import Channel
from ompy.runtime.control import Decoder, Frame, Kind
from ompy.runtime.heartbeat import Heartbeat
from ompy.runtime.pipes import connection_of
from ompy.runtime.ranks import Stage

SILENT: Final = "Nothing was heard of it for {:g} s: its host is down, or the way to it."


class AgentConnection:
    """An agent this process has started, or that was forked for it.

    Attributes:
        node: index of its host.
        host: its name.
        pid: of the agent, on its own host.
        shell: the process of this host that stands for it.
    """

    def __init__(
        self,
        loop: Loop,
        node: int,
        link: AgentLink,
        on_frame: Callable[[AgentConnection, Frame], object],
        on_gone: Callable[[AgentConnection, str], object],
        *,
        pid: int = 0,
        decoder: Decoder | None = None,
    ) -> None:
        """Listen to it.

        Args:
            loop: watches.
            node: index of its host.
            link: to the agent; belongs to the connection from now on.
            on_frame: called with each message but heartbeats.
            on_gone: called once when it is gone or not heard of, with a reason, which may be empty.
            pid: of the agent, if it is not that of the link.
            decoder: holds what was read before.
        """
        self.node = node
        self.host = link.host
        self.pid = pid or link.pid
        self.shell = link.pid
        self._remote = link.remote
        self._loop = loop
        self._on_frame = on_frame
        self._on_gone = on_gone
        self._expected = False  # it lets us hear from it
        self._heartbeat: Heartbeat | None = None
        self._channel: Channel | None = Channel(
            loop, connection_of(link), self._receive, self._gone, decoder
        )

    def begin_heartbeats(self, interval_s: float, misses: int, patience_s: float) -> None:
        """If it is on another host: from now on both sides let each other hear from them.

        Args:
            interval_s: seconds between two; 0 for never.
            misses: how many may fail to come.
            patience_s: seconds until the first has come.
        """
        if not self._remote or not interval_s or self._channel is None:
            return
        self._heartbeat = Heartbeat(
            self._loop,
            interval_s,
            misses,
            lambda: self.send(Kind.ALIVE),
            lambda: self._silent(interval_s * misses),
        )
        self._heartbeat.begin()
        self._loop.call_later(patience_s, self._see_whether_heard_of, patience_s)

    def send(self, kind: Kind, header: Mapping[str, Any] | None = None, body: bytes = b"") -> None:
        """Send a message; nothing happens after its end."""
        if self._channel is not None:
            self._channel.send(kind, header, body)

    def _receive(self, frame: Frame) -> None:
        if self._heartbeat is not None:
            self._heartbeat.heard()
        if frame.kind is not Kind.ALIVE:
            self._on_frame(self, frame)
        elif self._heartbeat is not None and not self._expected:
            self._expected = True  # it has begun: from now on silence means something
            self._heartbeat.watch(on=True)

    def _see_whether_heard_of(self, patience_s: float) -> None:
        """It was ready, and then may never have begun."""
        if not self._expected:
            self._silent(patience_s)

    def _silent(self, seconds: float) -> None:
        """The network to it is broken, or its host is down, or it has been stopped."""
        if self._channel is not None:
            self._channel.close()
            with suppress(ProcessLookupError):
                os.kill(self.shell, signal.SIGKILL)
            self._gone(SILENT.format(seconds))

    def _gone(self, reason: str) -> None:
        self._channel = None
        if self._heartbeat is not None:
            self._heartbeat.end()
        self._on_gone(self, reason)


def departure(exited: Frame) -> tuple[dict[str, Any], bytes]:
    """What other hosts are told when a rank has exited: header and body of DEPARTED."""
    finalized = exited.header["stage"] == Stage.FINALIZED
    return {"rank": exited.header["rank"], "finalized": finalized}, exited.header["reason"].encode()
