"""The rails of a job as who watches them sees them: what they carry, which are broken.

The launcher feeds it with what ranks tell (`rail_samples.py`, `rail_report.py`), as one line after
the other; a record of a job (`rail_record.py`) is these lines, so that it shows the same again.

A rail here is a pair of addresses, whichever ranks and BTLs use it: what one cable is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from ompy.runtime.rails.rail_samples import Carried

HISTORY: Final = 40  # arbitrary: rates a sparkline has room for
SILENT: Final = 2.5  # intervals; arbitrary: who has told nothing for so long sends nothing
LEAST: Final = 0.5  # intervals; arbitrary: a shorter sample says nothing of the rate
NS: Final = 1e-9  # s
# phases of healing in which a connection is being made or has just been refused
_MENDING: Final = frozenset({"mending", "pausing"})

Ends = tuple[tuple[str, str], tuple[str, str]]  # host and address, twice
PathKey = tuple[int, int, str]  # rank, peer, rail in the BTL's words


class State(Enum):
    """Of a rail."""

    UP = "up"
    BROKEN = "broken"
    MENDING = "mending"


class Change(NamedTuple):
    """A rail is not as it was.

    Attributes:
        time: s since the job began, on the launcher's clock.
        rail: its name.
        state: what it is now.
        why: the cause in the BTL's words, of one that broke.
    """

    time: float
    rail: str
    state: State
    why: str


@dataclass
class _Path:
    """One rank's way to a peer over a rail."""

    sent: int = 0
    rate: float = 0.0  # bytes per second
    heard: float = 0.0
    phase: str = "sound"


@dataclass
class Rail:
    """What is shown of one.

    Attributes:
        name: interface and hosts.
        state: what it is.
        since: s since the job began, when it became that.
        sent: bytes over it, both ways.
        rate: bytes per second.
        history: of the rate, the latest last.
        resent: messages that went again over others, in whole or in part, because it broke.
        breaks: how often it broke.
    """

    name: str
    state: State = State.UP
    since: float = 0.0
    sent: int = 0
    rate: float = 0.0
    history: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    resent: int = 0
    breaks: int = 0
    paths: dict[PathKey, _Path] = field(default_factory=dict)
    broken: dict[PathKey, int] = field(default_factory=dict)  # number of the event
    half_healed: bool = False  # one end uses it again, another one not yet


class RailWatch:
    """All rails of a job.

    Attributes:
        interval: s between two samples of a rank.
        rails: by pair of ends, in the order in which they were told of.
        changes: all of them.
    """

    def __init__(self, hosts: Sequence[str], interval: float) -> None:
        """Begin.

        Args:
            hosts: name of the host of each rank.
            interval: s between two samples of a rank.
        """
        self.interval = interval
        self.rails: dict[Ends, Rail] = {}
        self.changes: list[Change] = []
        self._hosts = list(hosts)
        self._of_path: dict[PathKey, Rail] = {}
        self._waiting: dict[PathKey, list[tuple[float, Mapping[str, Any]]]] = {}
        self._resent: dict[tuple[int, int], int] = {}  # by rank and number of the event

    def set_hosts(self, hosts: Sequence[str]) -> None:
        """The job has more ranks now; `hosts` is of all of them."""
        self._hosts = list(hosts)

    def carried(self, time: float, sample: Mapping[str, Any]) -> None:
        """A rank has told what its rails carried.

        Args:
            time: s since the job began.
            sample: `rank`; `before` and `at`, ns of that rank, between which the bytes that are new
                went; `rails`, each as `Carried`.
        """
        rank = int(sample["rank"])
        took = (sample["at"] - sample["before"]) * NS
        for row in sample["rails"]:
            told = Carried(*row)
            key = (rank, told.peer, told.rail)
            rail = self._of_path.get(key) or self._found(key, told)
            path = rail.paths[key]
            if took > self.interval * LEAST:
                path.rate = (told.sent - path.sent) / took
            rail.sent += told.sent - path.sent
            path.sent, path.heard, path.phase = told.sent, time, told.phase
            for earlier, event in self._waiting.pop(key, ()):
                self.event(earlier, event)
            self._judge(rail, time)

    def event(self, time: float, event: Mapping[str, Any]) -> None:
        """A rank has told of a rail that broke or healed (`rail_report.py`)."""
        key = (int(event["rank"]), int(event["peer"]), str(event["rail"]))
        rail = self._of_path.get(key)
        if rail is None:  # it broke before anything was told of it
            self._waiting.setdefault(key, []).append((time, event))
            return
        number = int(event["number"])
        rail.resent += event["messages"] - self._resent.get((key[0], number), 0)
        self._resent[key[0], number] = event["messages"]
        if not event["healed_ns"]:
            rail.broken[key] = number
            rail.paths[key].rate = 0.0
            rail.half_healed = False
        elif rail.broken.get(key) == number:
            del rail.broken[key]
            rail.half_healed = bool(rail.broken)
        self._judge(rail, time, str(event["cause"]))

    def tick(self, time: float) -> None:
        """An interval has gone by: the rates are those of now."""
        for rail in self.rails.values():
            rail.rate = 0.0
            for path in rail.paths.values():
                if time - path.heard < SILENT * self.interval:
                    rail.rate += path.rate
            rail.history.append(rail.rate)

    def _found(self, key: PathKey, told: Carried) -> Rail:
        here, there = self._hosts[key[0]], self._hosts[told.peer]
        one, other = sorted([(here, told.own), (there, told.there)])
        ends = (one, other)
        rail = self.rails.get(ends)
        if rail is None:
            rail = self.rails[ends] = Rail(self._name(told.interface, ends))
        self._of_path[key] = rail
        rail.paths[key] = _Path()
        return rail

    def _name(self, interface: str, ends: Ends) -> str:
        """Interface and hosts, or on one host its address; with all addresses if that is taken."""
        (here, own), (there, other) = ends
        name = f"{interface} {here} - {there}" if here != there else f"{interface} {own}"
        if any(rail.name == name for rail in self.rails.values()):
            name += f" ({own} - {other})"
        return name

    def _judge(self, rail: Rail, time: float, why: str = "") -> None:
        """Find out what a rail is now, and note when that is another thing."""
        state = State.UP
        if rail.broken:
            phases = {rail.paths[key].phase for key in rail.broken}
            state = State.MENDING if phases & _MENDING or rail.half_healed else State.BROKEN
            if "sound" in phases and rail.state is State.MENDING:
                state = State.MENDING  # it is connected, and is about to be used
        if state is rail.state:
            return
        if rail.state is State.UP:
            rail.breaks += 1
        rail.state, rail.since = state, time
        self.changes.append(Change(time, rail.name, state, why if state is State.BROKEN else ""))


def said(change: Change) -> str:
    """A change, in a line for who has no terminal."""
    why = f": {change.why}" if change.why else ""
    healed = " again" if change.state is State.UP else ""
    return f"{change.time:.1f} s: rail {change.rail} is {change.state.value}{healed}{why}"
