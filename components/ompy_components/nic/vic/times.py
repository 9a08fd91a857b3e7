"""When a VIC's packets leave: its stages, on the virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ompy.engine.base import Engine
from ompy.frameworks.nic.clock import Cost, DeviceClock, Stage
from ompy.frameworks.nic.clock_parameters import timed
from ompy.mca.parameter import Values
from ompy.net.base import Link, Network

from ompy_components.nic.vic.timings import TIMINGS


class Times:
    """The clock of one device, with what all its queue pairs share.

    The processor copies what is inline into its entry and rings, one doorbell after another. The
    device then reads the work entry, and the packet if that is not in it; many such reads are under
    way at once. It makes one packet after another, and the link sends one after another. Where they
    come in is the network's to say: `core/ompy/net/virtual/virtual_port.py`.

    Attributes:
        runs: time is modelled; otherwise everything happens at once.
        link: of the device; None where no time is modelled.
    """

    def __init__(self, engine: Engine, network: Network, values: Values) -> None:
        self._clock = DeviceClock(engine, network, wanted=values.clock)
        self.runs = self._clock.runs
        taken = timed(vars(values), TIMINGS)
        self.link: Link | None = taken["link"] if self.runs else None
        self._inline: Cost = taken["inline"]
        self._doorbell: Cost = taken["doorbell"]
        self._fetch: Cost = taken["fetch"]
        self._send: Cost = taken["send"]
        self._processor, self._sender = Stage(), Stage()

    def rung(self, packets: Sequence[tuple[int, bool]], leave: Callable[[], object]) -> None:
        """A doorbell was rung: have `leave` called when the first of the packets can go.

        Those behind it wait for the link longer than for the device. Each has its size, and whether
        it is inline.
        """
        now = self._clock.now()
        for size, inline in packets:
            if inline:
                self._processor.schedule_work(now, self._inline.of(size))
        rung = self._processor.schedule_work(now, self._doorbell.of(0))
        gone: list[int] = []
        for size, inline in packets:
            fetched = rung + self._fetch.of(0) + (0 if inline else self._fetch.of(size))
            gone.append(self._sender.schedule_work(fetched, self._send.of(size)))
        self._clock.at(gone[0], leave)
