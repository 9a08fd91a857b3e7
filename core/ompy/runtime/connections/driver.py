"""Drives a machine of the control plane: its connections, its timer, its signals, one loop.

What is common to all processes is here; what their surroundings have them do, beside talking to
each other, is in `coordinator.py` (the launcher) and `supervisor.py` (an agent).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from ompy.engine.reactor import Cancellable, Loop
from ompy.frameworks.plm import AgentLink
from ompy.runtime.connections.channel import Channel
from ompy.runtime.connections.control import Decoder, Frame, Kind
from ompy.runtime.connections.pipes import Connection, connection_of
from ompy.runtime.machines.acts import PARENT, Act, Drop, Send, Stop
from ompy.runtime.machines.events import Event, Seen

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Machine(Protocol):
    """What is driven."""

    @property
    def due(self) -> float | None:
        """When `TIME` is to be told, s; None: not by itself."""

    def handle(self, event: Event, now: float) -> list[Act]:
        """Something has happened. What is to be done."""


class Driver:
    """One process's.

    Attributes:
        machine: what decides. It is set before the first event.
        shells: the processes of this host that stand for agents below.
    """

    machine: Machine

    def __init__(self, loop: Loop) -> None:
        """Drive nothing yet."""
        self._loop = loop
        self._channels: dict[int, Channel] = {}
        self._timer: Cancellable | None = None
        self._due: float | None = None
        self.shells: dict[int, int] = {}

    # connections

    def connect(self, to: int, connection: Connection, decoder: Decoder | None = None) -> Channel:
        """Listen to the parent or to an agent below, over a connection that is ours now."""
        made = self._channels[to] = Channel(
            self._loop,
            connection,
            lambda frame: self._heard(to, frame),
            lambda reason: self._gone(to, reason),
            decoder,
        )
        return made

    def connect_agent(self, node: int, link: AgentLink, decoder: Decoder | None) -> None:
        """Listen to an agent that this process has started, or that was forked for it."""
        self.shells[node] = link.pid
        self.connect(node, connection_of(link), decoder)

    def send(self, to: int, kind: Kind, header: Mapping[str, Any], body: bytes = b"") -> None:
        """Say a word; nothing happens if nobody is there."""
        channel = self._channels.get(to)
        if channel is not None:
            channel.send(kind, header, body)

    def disconnect(self, to: int) -> None:
        """Say and hear nothing more."""
        channel = self._channels.pop(to, None)
        if channel is not None:
            channel.close()

    def _heard(self, who: int, frame: Frame) -> None:
        what = Seen.ABOVE if who == PARENT else Seen.BELOW
        self.tell(Event(what, who, frame.kind, frame.header, frame.body))

    def _gone(self, who: int, reason: str) -> None:
        self._channels.pop(who, None)
        what = Seen.PARENT_GONE if who == PARENT else Seen.CHILD_GONE
        self.tell(Event(what, who, body=reason.encode()))

    # the machine

    def tell(self, event: Event) -> None:
        """Something has happened: do what the machine has to be done about it."""
        for act in self.machine.handle(event, self._loop.time()):
            self.perform(act)
        self._set_timer()

    def see(self, what: Seen, who: int = -1, body: bytes = b"", **header: Any) -> None:
        """Something has happened that is no word."""
        self.tell(Event(what, who, None, header, body))

    def perform(self, act: Act) -> None:
        """Do one thing."""
        match act:
            case Send():
                self.send(act.to, act.kind, act.header, act.body)
            case Drop():
                self.disconnect(act.node)
                with suppress(ProcessLookupError, KeyError):
                    os.kill(self.shells[act.node], signal.SIGKILL)
            case Stop():
                self._loop.stop()
            case _:
                raise AssertionError(f"{act!r} is nothing that is done here")

    def _set_timer(self) -> None:
        due = self.machine.due
        if due == self._due:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = due
        if due is not None:
            self._timer = self._loop.call_at(due, self._time)

    def _time(self) -> None:
        self._timer = self._due = None
        self.see(Seen.TIME)
