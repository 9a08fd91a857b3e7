"""The stations that work passes in an emulated adapter with queues, and when it has passed them.

    processor --> fetch --> sending engine ==link==> receiving engine --> completion
    (doorbell)  (entry and data)                                          (written to memory)

The processor stores an entry, or only rings for it: then the adapter fetches entry and data over
PCIe, which takes a while but holds up nobody. What is inline needs no fetch. Engines do one packet
after another. What is longer than a packet leaves an engine packet by packet, so the stations of a
long message work at the same time, and the slowest one tells its rate. Completions are written in
order. Registering memory and giving it back occupy the processor.

Costs are the device's own, with their sources. Where no clock runs everything is at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ompy.frameworks.nic.clock import Cost, DeviceClock, Stage
from ompy.frameworks.nic.clock_parameters import Timing
from ompy.net.base import Link

UCX: Final = "openucx/ucx, ib_iface.c"
PACKET: Final = 4096  # InfiniBand specification 1, reference: the largest path MTU
PAGE: Final = 4_096  # bytes; x86's
NAMES: Final = (
    *("post", "inline", "fetch", "send", "receive", "complete"),
    *("register", "deregister"),
)


def adapter_timings(send: Timing, receive: Timing, link: Timing) -> tuple[Timing, ...]:
    """The timings of an InfiniBand adapter: its engines' and its link's, and what UCX reckons with.

    Source: openucx/ucx, src/uct/ib/base: the same figures for all generations.
    """
    return (
        Timing("post", "ringing for a work entry", Cost(40), UCX),
        Timing("inline", "storing inline bytes beside it", Cost(5), UCX),
        Timing("fetch", "fetching an entry and its bytes that are not inline", Cost(350), UCX),
        send,
        receive,
        Timing("complete", "writing a completion", Cost(20), UCX),
        Timing(
            "register",
            "registering memory, and its pages",
            Cost(16_000, 0, 246, PAGE),
            "16 us and 0.06 ns a byte, openucx/ucx, ib_md.c",
        ),
        Timing(
            "deregister",
            "giving a registration back",
            Cost(16_000),
            "arbitrary: as the call of registering, a command to the device; openucx/ucx has none",
        ),
        link,
    )


class Stations:
    """Of one device.

    Attributes:
        runs: time is modelled.
        link: between hosts; None where no time is modelled.
    """

    __slots__ = ("_clock", "_costs", "_processor", "_receiving", "_sending", "link", "runs")

    def __init__(self, clock: DeviceClock, costs: Mapping[str, Cost | Link]) -> None:
        """Of a clock and what work takes, by name: all of `NAMES`, and `link`."""
        self.runs = clock.runs
        link = costs["link"]
        assert isinstance(link, Link)
        self.link = link if clock.runs else None
        self._costs: dict[str, Cost] = {
            name: cost for name in NAMES if isinstance(cost := costs[name], Cost)
        }
        self._clock = clock
        self._processor = Stage()
        self._sending = Stage()
        self._receiving = Stage()

    def posted(self, size: int, *, inline: bool) -> int:
        """When the device has an entry and its `size` bytes, if it is posted now."""
        now = self._clock.now()
        if not self.runs:
            return now
        costs = self._costs
        stored = self._processor.schedule_work(now, costs["post"].of(0))
        if inline:
            return self._processor.schedule_work(now, costs["inline"].of(size))
        return stored + costs["fetch"].of(0)

    def registered(self, size: int) -> None:
        """Memory of `size` bytes is registered: what is posted next begins later."""
        if self.runs:
            self._processor.schedule_work(self._clock.now(), self._costs["register"].of(size))

    def deregistered(self) -> None:
        """A registration is given back: what is posted next begins later."""
        if self.runs:
            self._processor.schedule_work(self._clock.now(), self._costs["deregister"].of(0))

    def sent(self, since: int, size: int) -> int:
        """When the first packet of what the device has at `since` enters the link."""
        if not self.runs:
            return self._clock.now()
        cost = self._costs["send"]
        whole = cost.of(size)
        since = max(since, self._clock.now())
        return self._sending.schedule_work(since, whole) - whole + _one_packet(cost, size)

    def arrived(self, size: int) -> None:
        """The last of `size` bytes has come over the link: `taken` says when they are taken in."""
        if self.runs:
            cost = self._costs["receive"]
            whole = cost.of(size)
            begun = self._clock.now() + _one_packet(cost, size) - whole
            self._receiving.schedule_work(begun, whole)

    def taken(self) -> int:
        """When everything that has arrived has been taken in."""
        return max(self._clock.now(), self._receiving.free)

    def completed(self) -> int:
        """When the completion of what has arrived can be read."""
        if not self.runs:
            return self._clock.now()
        return self.taken() + self._costs["complete"].of(0)

    def now(self) -> int:
        """Nanoseconds of the rank's clock."""
        return self._clock.now()

    def at(self, when: int, effect: Callable[[], object]) -> None:
        """As `DeviceClock.at`."""
        self._clock.at(when, effect)


def _one_packet(cost: Cost, size: int) -> int:
    return cost.of(min(size, cost.packet) if cost.packet else size)
