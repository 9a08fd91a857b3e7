"""What a rank tells of its rails while somebody watches: bytes carried, and where healing is.

Only where the launcher has asked for it (`bml_base_sample_rails`): then a meter lies under all
sockets of the rank, and a timer of its engine sends what has changed since the last sample. The
timer runs when the program lets MPI work, so each sample says when it was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.frameworks.bml import BmlEndpoint
from ompy.net.meter import Meter

if TYPE_CHECKING:
    from ompy.frameworks.btl import Endpoint
    from ompy.frameworks.context import RankContext

MS: Final = 1_000_000  # ns; Linux counts so


class Carried(NamedTuple):
    """One rail of a rank, as it travels.

    Attributes:
        peer: rank at the other end.
        rail: the BTL and its interface, in the BTL's words, as in `RailEvent`.
        interface, own, there: name of the interface, its address, and the peer's.
        sent: bytes since the rank began, as `net/meter.py` counts. Those of several BTLs over one
            interface cannot be told apart, and are the first one's.
        phase: of healing (`frameworks/paths/healing.py`), `sound` where nothing broke.
    """

    peer: int
    rail: str
    interface: str
    own: str
    there: str
    sent: int
    phase: str


class RailSampler:
    """The rank's side."""

    def __init__(
        self,
        context: RankContext,
        interval_ms: int,
        tell: Callable[[int, int, Sequence[Carried]], object],
    ) -> None:
        """Count from now on; `begin` tells. Call before anything uses the rank's network.

        Args:
            context: of the rank.
            interval_ms: between two samples.
            tell: sends when the rails were looked at before and now, in ns since the rank was
                brought up, and those that have changed.
        """
        self._context = context
        self._interval = interval_ms * MS
        self._tell = tell
        self._meter = Meter(context.network)
        self._phases: dict[tuple[int, str], str] = {}
        self._known: dict[int, Endpoint] = {}  # by identity; a rail that breaks stays
        self._told: dict[tuple[int, str], Carried] = {}
        self._resent: dict[int, int] = {}  # messages, by the event's place
        self._began = context.engine.now()
        self._looked = 0  # ns since then
        context.network.install(self._meter)

    def begin(self) -> None:
        """Tell from now on, every so often."""
        self._began = self._context.engine.now()
        self._context.tell_phase = self._phase
        self._later()

    def tell(self) -> None:
        """Tell what has changed; of rails that broke, also how much has gone again."""
        changed = [row for row in self._rows() if self._told.get((row.peer, row.rail)) != row]
        before, self._looked = self._looked, self._context.engine.now() - self._began
        if changed:
            self._told.update({(row.peer, row.rail): row for row in changed})
            self._tell(before, self._looked, changed)
        for place, event in enumerate(self._context.rail_events):
            if self._resent.get(place, 0) != event.messages:
                self._resent[place] = event.messages
                self._context.tell_rail(event)

    def _phase(self, peer: int, rail: str, phase: str) -> None:
        """Tell it at once; what was carried is told when the interval is over."""
        self._phases[peer, rail] = phase
        at = self._context.engine.now() - self._began
        for key, row in self._told.items():
            if (row.peer, row.interface) == (peer, rail):
                self._told[key] = row._replace(phase=phase)
                self._tell(at, at, [self._told[key]])

    def _tick(self) -> None:
        self.tell()
        self._later()

    def _later(self) -> None:
        self._context.engine.call_later(self._interval, self._tick)

    def _rows(self) -> Iterator[Carried]:
        self._look()
        counts = self._meter.carried()
        seen = set()
        for endpoint in self._known.values():
            rail, ends = endpoint.describe(), endpoint.ends()
            key = (endpoint.proc.rank, ends[0])
            if (key[0], rail) in seen:  # another connection of the same
                continue
            seen.add((key[0], rail))
            sent = counts.pop(key, 0)
            yield Carried(key[0], rail, *ends, sent, self._phases.get(key, "sound"))

    def _look(self) -> None:
        """Find the rails to the peers that have been asked for."""
        for proc in self._context.procs:
            peer = proc.bml_endpoint
            if isinstance(peer, BmlEndpoint):
                for rail in peer.send.rails:
                    if rail.endpoint.ends()[0]:
                        self._known.setdefault(id(rail.endpoint), rail.endpoint)
