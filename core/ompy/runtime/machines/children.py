"""The agents below a process, as a machine knows them: heartbeats, fences, news for the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.acts import Drop, Send
from ompy.runtime.machines.agenda import earliest
from ompy.runtime.machines.events import NOTHING, Event
from ompy.runtime.machines.leave_news import NewsOfHosts
from ompy.runtime.machines.pulse import Pulse
from ompy.runtime.machines.stages import Stage

SILENT: Final = "Nothing was heard of it for {:g} s: its host is down, or the way to it."


class Silence(NamedTuple):
    """An agent that is not heard of any longer.

    Attributes:
        node: its index.
        reason: in words.
    """

    node: int
    reason: str


class Child:
    """An agent below.

    Attributes:
        node: its index.
        pid: on its own host.
        remote: that is another one, so both ends let each other hear from them.
        fences: ranks below it come to the fence of the job's beginning.
        here: its connection has not ended.
    """

    __slots__ = ("begun", "fences", "here", "node", "pid", "pulse", "remote", "unheard")

    def __init__(self, node: int, pid: int, *, remote: bool, fences: bool = True) -> None:
        self.fences = fences
        self.node = node
        self.pid = pid
        self.remote = remote
        self.here = True
        self.begun = False  # it lets us hear from it
        self.pulse: Pulse | None = None
        self.unheard: tuple[float, float] | None = None  # when it is too late, and after how long


class Children:
    """Those a process is connected to."""

    def __init__(self, members: Iterable[Child] = (), relays: Collection[int] = ()) -> None:
        """All are there.

        Args:
            members: they.
            relays: which of them have others below them.
        """
        self._members = {child.node: child for child in members}
        self._relays = frozenset(relays)
        self._fenced: set[int] = set()
        self._leaving = NewsOfHosts()

    @property
    def nodes(self) -> list[int]:
        """Their indices."""
        return list(self._members)

    def add(self, child: Child) -> None:
        """Another one."""
        self._members[child.node] = child

    def pid(self, node: int) -> int:
        """Of an agent."""
        return self._members[node].pid

    def watch(
        self,
        node: int,
        now: float,
        interval_s: float,
        misses: int,
        patience_s: float | None = None,
    ) -> None:
        """If it is on another host: from now on both sides let each other hear from them.

        Args:
            node: its index.
            now: s.
            interval_s: between two heartbeats; 0 for never.
            misses: how many may fail to come.
            patience_s: until the first has come; None if it counts from the beginning.
        """
        child = self._members[node]
        child.pulse = child.unheard = None
        if not child.remote or not interval_s or not child.here:
            return
        child.pulse = Pulse(now, interval_s, misses, watching=patience_s is None)
        child.begun = patience_s is None
        if patience_s is not None:
            child.unheard = (now + patience_s, patience_s)

    def heard(self, event: Event) -> None:
        """A word has come. With its first heartbeat it has begun: then silence means something."""
        child = self._members[event.who]
        if child.pulse is None:
            return
        child.pulse.heard()
        if event.kind is Kind.ALIVE and not child.begun:
            child.begun, child.unheard = True, None
            child.pulse.watch(on=True)

    def gone(self, node: int) -> bool:
        """Its connection has ended. False: that was known."""
        child = self._members[node]
        was, child.here = child.here, False
        child.pulse = child.unheard = None
        return was

    @property
    def due(self) -> float | None:
        """When there is something to say or to miss."""
        children = self._members.values()
        pulses = [child.pulse.due for child in children if child.pulse is not None]
        unheard = [child.unheard[0] for child in children if child.unheard is not None]
        return earliest(*pulses, *unheard)

    def time(self, now: float) -> tuple[list[Send | Drop], list[Silence]]:
        """What is to be done now, and who is lost."""
        acts: list[Send | Drop] = []
        lost = []
        for child in self._members.values():
            reason = ""
            if child.pulse is not None and child.pulse.due is not None and child.pulse.due <= now:
                patience, there = child.pulse.patience, child.pulse.turn(now)
                acts.append(Send(child.node, Kind.ALIVE))
                reason = "" if there else SILENT.format(patience)
            if child.unheard is not None and child.unheard[0] <= now:
                reason = reason or SILENT.format(child.unheard[1])
            if reason:
                self.gone(child.node)
                acts.append(Drop(child.node))
                lost.append(Silence(child.node, reason))
        return acts, lost

    def tell(
        self,
        kind: Kind,
        header: Mapping[str, Any] = NOTHING,
        body: bytes = b"",
        but: int | None = None,
    ) -> list[Send]:
        """Say a word to all but one."""
        return [
            Send(node, kind, header, body)
            for node, child in self._members.items()
            if node != but and child.here
        ]

    def departure(self, event: Event) -> list[Send]:
        """Tell all of a rank's end, but for its agent if that says so itself.

        That a process has ended is no news where its agent has told by LEFT that it was done.
        """
        header = event.header
        if header["known"]:
            return []
        done = header["stage"] == Stage.FINALIZED
        finalized, dead = header["expendable"] or done, header["expendable"] and not done
        told = {"rank": header["rank"], "finalized": finalized, "dead": dead}
        return self.tell(Kind.DEPARTED, told, header["reason"].encode(), self._only(event.who))

    def collect_leaving(self, event: Event) -> bool:
        """Ranks leave. Returns whether these are the first of which nobody was told."""
        return self._leaving.add_news(event.who, event.body)

    def leaving(self) -> list[Send]:
        """Tell all of the ranks that leave: the moment is over, or somebody has ended."""
        body, agents = self._leaving.take_news()
        if not body:
            return []
        only = self._only(agents.pop()) if len(agents) == 1 else None
        return self.tell(Kind.LEFT, NOTHING, body, only)

    def _only(self, node: int) -> int | None:
        """One that need not be told what it has said; a relay has not told those below it."""
        return None if node in self._relays else node

    def fenced(self, node: int) -> bool:
        """All ranks below an agent are at the fence. True: and below all agents."""
        self._fenced.add(node)
        if len(self._fenced) < sum(child.fences for child in self._members.values()):
            return False
        self._fenced.clear()
        return True
