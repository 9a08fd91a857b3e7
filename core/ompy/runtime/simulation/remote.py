"""What a rank's process has in place of engine and network: both are the scheduler's.

Between two answers of the scheduler no time passes and nothing happens elsewhere, so what a rank
asks for without needing an answer (a packet sent, a timer) waits for its next call and goes along.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

from ompy.data.errors import MPIError
from ompy.engine.stepped import SteppedEngine
from ompy.engine.timers import Timer
from ompy.net.base import (
    WOULD_BLOCK,
    Address,
    Datagram,
    Doorbell,
    Interface,
    Link,
    LinkError,
    Listener,
    Network,
    Readiness,
    Ready,
    Source,
    Stream,
)
from ompy.net.memory.process_copy import ProcessCopy
from ompy.net.virtual.virtual_copy import VirtualCopy
from ompy.net.virtual.virtual_memory import MEMORY_SIZE, VirtualMemory
from ompy.net.virtual.virtual_network import beginning
from ompy.net.virtual.virtual_rail import WINDOW
from ompy.runtime.simulation.line import Line, LineClosed
from ompy.runtime.simulation.twins import make_twin

if TYPE_CHECKING:
    from ompy.runtime.simulation.host_memory import HostMemory

ENDED: Final = 1  # exit code nobody reads: the world has ended around this rank
# ns of virtual time; arbitrary: about what a round of polling takes a rank, so that a program which
# tests in a loop gets on as fast as it would
POLL_COST: Final = 5_000
LOOK: Final = 1_000  # ns; arbitrary: about what a look at a clock takes Python, many times over
SETTLE: Final = 50  # ns of virtual time; arbitrary: enough for others to get in between two polls
ODD: Final = "odd"  # said by a rank that, told the same once more, did something else
BATCH: Final = 64  # calls; arbitrary: bounds what waits in memory
_HARMLESS: Final = frozenset(
    {"after", "ring", "transmit", "watch_path", "unwatch_path", "outages"}
)  # calls that change nothing that is ready here


class Conducted:
    """This process's line to the scheduler, and what the scheduler says besides.

    Attributes:
        time: nanoseconds of the world's clock, which stands still between two answers.
        calling: a call is under way.
        ready: what is ready in each set of sources, as of the last answer.
        stale: something waits for the next call that may change that.
        on_news: told a rank and how it ended; what it is not there for, it is told when it is.
        on_death: told the same of one that has died while the world goes on.
        on_left: told a rank that has begun to finalize, and whether it never sent us anything.
        on_answer: told the number of what was asked, an error class, and the answer.
        on_direct: told what became of an operation, in a world that is explored.
        on_path: told watch, verdict and questions without an answer (`runtime/probes/client.py`).
        where: asked for a report of this rank, as text.
        standing: asked how it stands (`standing.py`).
        on_stop: called when the world ends around this rank; returns what it has to say at its end.
    """

    def __init__(self, line: Line) -> None:
        self.time = 0
        self.calling = False
        self.ready: dict[int, list[tuple[int, bool, bool]]] = {}
        self.stale = False
        self.on_news: Callable[[int, str], object] | None = None
        self.on_death: Callable[[int, str], object] | None = None
        self.on_left: Callable[[int, bool], object] | None = None
        self.on_direct: Callable[..., object] = lambda *_: None
        self.on_path: Callable[[int, str, int], object] | None = None
        self.on_answer: Callable[[int, int, bytes], object] | None = None
        self.where: Callable[[], dict[str, Any]] = dict
        self.standing: Callable[[], dict[str, Any]] = dict
        self.on_stop: Callable[[], dict[str, Any]] = dict
        self._caller = 0  # the thread that calls
        self._line = line
        self._past: deque[tuple[Any, Any]] = deque()  # answers, and what was said to each then
        self._expected: Any = None
        self._waiting: list[tuple[Any, ...]] = []
        self._untold: list[tuple[Any, ...]] = []

    def later(self, *call: Any) -> None:
        """Have something done before the next call; it has no answer."""
        self._waiting.append(call)
        self.stale = self.stale or call[0] not in _HARMLESS
        if len(self._waiting) >= BATCH:
            self.call("nothing")

    def record_call(self, event: tuple[Any, ...]) -> None:
        """An entry of the record of calls; it goes along with the next call."""
        if not self._waiting or self._waiting[-1][0] != "checked":
            self._waiting.append(("checked", []))
        self._waiting[-1][1].append(event)

    def call(self, *call: Any) -> Any:
        """Have something done and wait for its answer. Others may run meanwhile.

        Raises:
            LinkError, MPIError: as the scheduler's side raised.
        """
        self._refuse_threads()
        self._waiting.append(call)
        batch, self._waiting = self._waiting, []
        self._caller = threading.get_ident()
        self.calling = True
        try:
            self._say(batch)
            return self.answer()
        except LineClosed:
            os._exit(ENDED)
        finally:
            self.calling = False

    def _refuse_threads(self) -> None:
        """End the world if another thread waits for an answer: it would get this one's."""
        if self.calling and self._caller != threading.get_ident():
            self.refuse_threads()

    def refuse_threads(self) -> None:
        """End the world, which is none for several threads of a rank."""
        self._line.send([("threads",)])
        if not self.calling:  # nothing tells this process that it is over
            os._exit(ENDED)
        threading.Event().wait()  # this process ends with the world

    def watch_path(self, header: dict[str, Any]) -> None:
        """Have the agents of the world watch a path."""
        self.later("watch_path", header)

    def unwatch_path(self, watch: int) -> None:
        """Have them do so no more."""
        self.later("unwatch_path", watch)

    def tell_outages(self, began: int, fired: Mapping[int, int]) -> None:
        """Say which lasting faults have begun at this rank, and when."""
        self.later("outages", began, dict(fired))

    def say_where(self, where: dict[str, Any]) -> None:
        """Say without being asked where this rank is, unless the scheduler hears of it anyway."""
        if not self.calling:
            self._line.send([("here", where, {})])

    def end(self, code: int, report: dict[str, Any]) -> None:
        """The program has ended, and this process will."""
        self.calling = True
        self._say([*self._waiting, ("end", code, report)])

    def _say(self, batch: list[tuple[Any, ...]]) -> None:
        """Say it, unless who conducts the world has heard it from a twin that was told the same."""
        expected, self._expected = self._expected, None
        if expected is None:
            self._line.send(batch)
        elif expected != batch:
            self._line.send([(ODD,)])
            os._exit(ENDED)

    def _heard(self) -> tuple[Any, ...]:
        """The next answer: of those that were sent together, or a new one."""
        if self._past:
            answer, self._expected = self._past.popleft()
            return tuple(answer)
        found: tuple[Any, ...] = self._line.receive()
        return found

    def _hand_out(self, news: list[tuple[Any, ...]]) -> None:
        """Tell who wants to know; what comes before the rank is up waits for it."""
        told: dict[str, Callable[..., object] | None] = {
            "path": self.on_path,
            "left": self.on_left,
            "ended": self.on_news,
            "died": self.on_death,
            "answer": self.on_answer,
            "direct": self.on_direct,
        }
        self._untold += news
        if None not in told.values():
            news, self._untold = self._untold, []
            for what, *said in news:
                listener = told[what]
                assert listener is not None, "all are there"
                listener(*said)

    def answer(self) -> Any:
        """Wait for the scheduler, and do what it wants besides."""
        while True:
            self.time, kind, value, news, self.ready = self._heard()
            self.stale = False
            self._hand_out(news)
            match kind:
                case "link":
                    raise LinkError(value)
                case "refused":
                    raise MPIError(*value)
                case "where":
                    self._line.send([("here", self.where(), self.standing())])
                case "fork":
                    make_twin(self._line)
                case "past":
                    self._past.extend(value)
                case "stop":
                    self._line.send([("report", self.on_stop())])
                    os._exit(ENDED)
                case _:
                    return value


class RemoteEngine(SteppedEngine):
    """Drives the rank of this process, on the scheduler's clock.

    Attributes:
        look_cost: ns of virtual time that a look at a clock takes.
    """

    look_cost = LOOK

    def __init__(self, world: Conducted, random: Random, breaks: Random) -> None:
        """Drive it, by what the scheduler says; the rest as for any `SteppedEngine`."""
        super().__init__(random, breaks, SETTLE)
        self.reason: object = None  # for the pause that it is in
        self._world = world

    def now(self) -> int:
        """Nanoseconds of the world's clock."""
        return self._world.time

    def call_later(self, delay: int, callback: Callable[[], object]) -> Timer:
        """Call `callback` later; the scheduler knows when to wake this rank."""
        timer = super().call_later(delay, callback)
        self._world.later("after", delay)
        return timer

    def pass_time(self, duration: int) -> None:
        """Have the scheduler's clock run on."""
        self._world.call("spend", duration)

    def progress(self) -> int:
        """Poll once, which costs a little virtual time."""
        self.spend(POLL_COST)
        return self.poll_all()

    def pause(self, reason: object) -> None:
        """Give the turn away; the scheduler asks for the reason when it wants to know."""
        self.reason = reason
        self._world.call("pause")
        self.reason = None

    def wake_after(self, delay: int) -> None:
        """Have the scheduler wake this rank."""
        self._world.later("after", delay)


class RemoteSource(Source):
    """A source that lives at the scheduler.

    The scheduler forgets it when it is closed, so nothing about it is asked for afterwards.

    Attributes:
        number: what the scheduler calls it.
        closed: it has been given back.
    """

    __slots__ = ("_world", "closed", "number")

    def __init__(self, world: Conducted, number: int) -> None:
        self._world = world
        self.number = number
        self.closed = False

    def close(self) -> None:
        """Close it."""
        if not self.closed:
            self.closed = True
            self._world.later("close", self.number)

    def check(self) -> None:
        """See that it is open.

        Raises:
            LinkError: it is closed.
        """
        if self.closed:
            raise LinkError("this end is closed")


class RemoteStream(RemoteSource, Stream):
    """One end of a simulated connection."""

    __slots__ = ("address",)

    def __init__(self, world: Conducted, number: int, address: Address) -> None:
        super().__init__(world, number)
        self.address = address

    def send(self, pieces: Sequence[memoryview]) -> int:
        """Hand bytes to the scheduler, no more than a stream ever takes at once."""
        self.check()
        taken: int = self._world.call("send", self.number, beginning(pieces, WINDOW))
        return taken

    def receive_into(self, view: memoryview) -> int:
        """Take bytes that have arrived."""
        self.check()
        data: bytes | None = self._world.call("receive", self.number, len(view))
        if data is None:
            return WOULD_BLOCK
        view[: len(data)] = data
        return len(data)

    def fail(self, why: str) -> None:
        """Break this end."""
        if not self.closed:
            self._world.later("fail", self.number, why)


class RemoteListener(RemoteSource, Listener):
    """Accepts simulated connections."""

    __slots__ = ("_network", "address")

    def __init__(self, network: RemoteNetwork, number: int, address: Address) -> None:
        super().__init__(network.world, number)
        self._network = network
        self.address = address

    def accept(self) -> Stream | None:
        """The oldest connection not yet accepted, or None."""
        if self.closed:
            return None
        found = self._world.call("accept", self.number)
        if found is None:
            return None
        number, host, port = found
        stream = RemoteStream(self._world, number, self.address)
        return self._network.wrap_stream(stream, Address(host, port))


class RemoteDatagram(RemoteSource, Datagram):
    """A simulated datagram socket."""

    __slots__ = ("_overrun", "address")

    def __init__(self, world: Conducted, number: int, address: Address) -> None:
        super().__init__(world, number)
        self.address = address
        self._overrun = 0

    def send(self, packet: memoryview, address: Address) -> bool:
        """Send one packet: there is always room."""
        self.check()
        self._world.later("transmit", self.number, bytes(packet), tuple(address))
        return True

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        """The oldest packet that is here."""
        self.check()
        found = self._world.call("take", self.number, len(view))
        if found is None:
            return None
        data, host, port, self._overrun = found
        view[: len(data)] = data
        return len(data), Address(host, port)

    def overrun(self) -> int:
        """As the scheduler said with the packet that was taken last."""
        return self._overrun


class RemoteReadiness(Readiness):
    """A set that the scheduler keeps."""

    def __init__(self, world: Conducted, number: int) -> None:
        self._world = world
        self._number = number
        self._owners: dict[int, object] = {}
        self._held: set[int] = set()

    def add(self, source: Source, owner: object) -> None:
        """Watch a source of this module, or one wrapped around it."""
        found = _remote(source)
        found.check()
        self._owners[found.number] = owner
        self._world.later("watch", self._number, found.number)
        if isinstance(source, Stream) and source.holds():
            self._held.add(found.number)

    def hold(self, source: Stream, *, held: bool) -> None:
        """Report a source without asking the scheduler, or no longer."""
        number = _remote(source).number
        if held and number in self._owners:
            self._held.add(number)
        else:
            self._held.discard(number)

    def want_write(self, source: Source, *, wanted: bool) -> None:
        """Watch for room to write, or no longer."""
        found = _remote(source)
        if found.number in self._owners and not found.closed:
            self._world.later("want_write", self._number, found.number, wanted)

    def remove(self, source: Source) -> None:
        """Forget a source."""
        found = _remote(source)
        self._held.discard(found.number)
        if self._owners.pop(found.number, None) is not None and not found.closed:
            self._world.later("unwatch", self._number, found.number)

    def poll(self) -> list[Ready]:
        """What is ready now."""
        if self._world.stale:
            self._world.call("nothing")
        found = self._world.ready.get(self._number, ())
        if self._held:
            here = {number: (reads, writes) for number, reads, writes in found}
            for number in sorted(self._held):
                here[number] = (True, here.get(number, (True, False))[1])
            found = [(number, reads, writes) for number, (reads, writes) in here.items()]
        return [Ready(self._owners[number], reads, writes) for number, reads, writes in found]

    def close(self) -> None:
        """Forget everything."""
        self._owners.clear()
        self._held.clear()
        self._world.later("unwatch_all", self._number)


class RemoteBell(Doorbell):
    """The doorbell of a rank of this host."""

    __slots__ = ("_local_rank", "_world")

    def __init__(self, world: Conducted, local_rank: int) -> None:
        self._world = world
        self._local_rank = local_rank

    def ring(self) -> None:
        """Have the scheduler wake that rank."""
        self._world.later("ring", self._local_rank)


def _plain(link: Link | None) -> tuple[int, ...] | None:
    """A link as a line carries it: a tuple of that name and no other."""
    return tuple(link) if link is not None else None


class RemoteNetwork(Network):
    """This rank's way to the others.

    Attributes:
        world: the scheduler.
    """

    virtual = True

    def __init__(
        self,
        world: Conducted,
        rank: int,
        interfaces: Sequence[Interface],
        random: Random,
        shared: HostMemory | None = None,
    ) -> None:
        """Reach the others.

        Args:
            world: the scheduler.
            rank: the own one.
            interfaces: of its host.
            random: where entropy comes from.
            shared: memory of the host; None where the rank is alone on it.
        """
        super().__init__()
        self._shared = shared
        self.world = world
        self._rank = rank
        self._memory = VirtualMemory({rank: rank})
        self._interfaces = list(interfaces)
        self._random = random
        self._sets = 0

    def rank_at(self, address: Address) -> int:
        """It stands in every address here."""
        return int(address.host.partition("/")[2])

    def interfaces(self) -> list[Interface]:
        """One per rail."""
        return list(self._interfaces)

    def in_network(self, address: str, network: str) -> bool:
        """Whether both are on the same rail."""
        return address.partition("/")[0] == network.partition("/")[0]

    def listen(
        self, host: str, ports: Iterable[int] = (0,), *, link: Link | None = None
    ) -> Listener:
        """Listen at one of this rank's addresses."""
        number, port = self.world.call("listen", host, tuple(ports), _plain(link))
        return RemoteListener(self, number, Address(host, port))

    def connect(self, address: Address, source: str = "", *, link: Link | None = None) -> Stream:
        """Begin a connection."""
        number, *own = self.world.call("connect", tuple(address), source, _plain(link))
        return self._wrap_stream(RemoteStream(self.world, number, Address(*own)), address)

    def wrap_stream(self, stream: Stream, peer: Address) -> Stream:
        """For listeners: what they accept passes the middleware, too."""
        return self._wrap_stream(stream, peer)

    def datagram(self, host: str, port: int = 0, *, link: Link | None = None) -> Datagram:
        """A datagram socket at one of this rank's addresses."""
        number, port = self.world.call("datagram", host, port, _plain(link))
        return self._wrap_datagram(RemoteDatagram(self.world, number, Address(host, port)))

    def readiness(self) -> Readiness:
        """An empty set."""
        self._sets += 1
        self.world.later("readiness", self._sets)
        return RemoteReadiness(self.world, self._sets)

    def segment(self, name: str, size: int) -> memoryview:
        """Memory of the host: this rank's alone where no other is on it."""
        if self._shared is not None:
            return self._shared.segment(name, size)
        return self._memory.segment(self._rank, name, size)

    def region(self, size: int) -> memoryview:
        """Memory that the others of this host may map."""
        if self._shared is not None:
            return self._shared.region(size)
        return self._memory.region(self._rank, size)

    def release_region(self, address: int, *, pages: bool = True) -> None:
        """It is needed no more."""
        if self._shared is not None:
            self._shared.release_region(address, pages=pages)
            return
        self._memory.release_region(self._rank, address)

    def memory_size(self) -> int:
        """The same on every host."""
        return MEMORY_SIZE

    def doorbell(self, local_rank: int) -> Doorbell:
        """Of a rank of this host."""
        return RemoteBell(self.world, local_rank)

    def process_copy(self) -> ProcessCopy | None:
        """Copies within this host."""
        if self._shared is not None:
            return self._shared.copy()
        return VirtualCopy(self._memory, self._rank)

    def entropy(self, count: int) -> bytes:
        """Bytes drawn from the seed."""
        return self._random.randbytes(count)

    def close(self) -> None:
        """Nothing to give back: the world ends as a whole."""


def _remote(source: Source) -> RemoteSource:
    """The simulated source under any middleware."""
    while not isinstance(source, RemoteSource):
        source = source.inner  # type: ignore[attr-defined]
    return source
