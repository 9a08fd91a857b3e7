"""The agents of a virtual world: they ask on the scheduler's clock, and never compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ompy.frameworks.paths.path_watch import Paths, PathWatch, Probing
from ompy.net.virtual.virtual_network import Fabric
from ompy.runtime.probes.machine import PathProbe, because
from ompy.runtime.probes.probe_datagrams import SIZE

if TYPE_CHECKING:
    from ompy.frameworks.proc import Proc


Tell = Callable[[], object]


class Losses(Protocol):
    """What the faults of one rank do to what its agent sends and gets."""

    def sending_blocked(self, receiver: int, rail: str) -> bool:
        """Whether nothing gets from the rank to another over a rail."""

    def receiving_blocked(self, rail: str) -> bool:
        """Whether nothing that comes in over a rail is heard."""


class VirtualAgents:
    """What the agents of all hosts of a virtual world do: one question and answer at a time.

    A question is lost where a lasting fault of the asking rank would lose a packet to the peer, an
    answer where one of the peer would lose a packet to the asker. Otherwise both take as long
    as any small packet.
    """

    def __init__(self, fabric: Fabric, losses: Sequence[Losses]) -> None:
        """Know the network, and what the faults of each rank do."""
        self._fabric = fabric
        self._losses = losses

    def begin(
        self, ends: tuple[int, int], addresses: tuple[str, str], probe: PathProbe, tell: Tell
    ) -> VirtualWatch:
        """Ask over a path from now on.

        Args:
            ends: for which rank, and who is at the other end.
            addresses: of the interfaces of both, `rail/rank`.
            probe: asks, and says how often.
            tell: called when the verdict is another one.
        """
        watch = VirtualWatch(probe, tell)
        rank, peer = ends
        source, target = addresses
        rails = source.partition("/")[0], target.partition("/")[0]

        def turn() -> None:
            if watch.ended:
                return
            number = watch.probe.turn()
            if number:
                self._ask(rank, peer, rails, lambda: watch.answer(number))
            self._fabric.scheduler.after(watch.probe.pause, turn)
            watch.note()

        turn()
        return watch

    def _ask(
        self, rank: int, peer: int, rails: tuple[str, str], answered: Callable[[], object]
    ) -> None:
        here, there = rails
        if here != there or self._losses[rank].sending_blocked(peer, here):
            return

        def question() -> None:
            if not (
                self._losses[peer].receiving_blocked(there)
                or self._losses[peer].sending_blocked(rank, there)
            ):
                self._travel(peer, rank, there, answer)

        def answer() -> None:
            if not self._losses[rank].receiving_blocked(here):
                answered()

        self._travel(rank, peer, here, question)

    def _travel(self, rank: int, peer: int, rail: str, arrived: Callable[[], None]) -> None:
        fabric = self._fabric
        way = fabric.rail_of(f"{rail}/{rank}")
        fabric.scheduler.after(fabric.delay(way, rank, peer, SIZE, of="probe"), arrived)


class VirtualWatch(PathWatch):
    """One path, asked about by the agents of a virtual world.

    Attributes:
        probe: what answers came to.
        ended: nobody needs to know any more.
    """

    asked = True

    def __init__(self, probe: PathProbe, tell: Tell) -> None:
        super().__init__()
        self.probe = probe
        self.ended = False
        self._tell = tell

    def answer(self, number: int) -> None:
        """An answer is here."""
        self.probe.answer(number)
        self.note()

    def note(self) -> None:
        """Say so if the verdict is another one."""
        if self.probe.verdict is not self.verdict and not self.ended:
            self.verdict = self.probe.verdict
            self._tell()

    @property
    def why(self) -> str:
        """In words."""
        return because(self.verdict, self.probe.unanswered)

    def end(self) -> None:
        """Ask no more."""
        self.ended = True


class VirtualPaths(Paths):
    """The paths of one rank of a virtual world."""

    def __init__(
        self, agents: VirtualAgents, rank: int, probing: Probing, wake: Callable[[], object]
    ) -> None:
        """The rank's way to its agent.

        Args:
            agents: of the world.
            rank: which.
            probing: how paths are asked about.
            wake: wakes the rank.
        """
        self._agents = agents
        self._rank = rank
        self._probing = probing
        self._wake = wake

    def watch(
        self,
        proc: Proc,
        source: str,
        target: str,
        rail: str,
        changed: Callable[[], object],
        *,
        failover: bool = False,
        least: int = 0,
    ) -> PathWatch:
        """Have the agent ask."""

        def tell() -> None:
            changed()
            self._wake()

        probing = self._probing
        if not probing.timeout:
            return PathWatch()
        probe = PathProbe(probing.interval, probing.turns(failover=failover, least=least))
        return self._agents.begin((self._rank, proc.rank), (source, target), probe, tell)
