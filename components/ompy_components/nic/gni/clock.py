"""When what a Gemini or Aries NIC does happens, in the virtual world.

Two stages of a device do one thing after another, beside each other: the processor (stores, calls,
copies) and the block transfer engine. Neither is faster than the NIC cuts bytes into packets.
Behind it each packet takes the way to the peer's memory, and over the link where that is another
host's.
"""

from __future__ import annotations

from typing import NamedTuple

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.clock import Cost, DeviceClock, Stage
from ompy.frameworks.nic.clock_parameters import timed
from ompy.frameworks.nic.gni import PostDescriptor, PostType
from ompy.mca.parameter import Values
from ompy.net.base import Link

from ompy_components.nic.gni.timings import TIMINGS

RDMA_PUT, RDMA_GET = PostType.RDMA_PUT, PostType.RDMA_GET
FMA_GET = PostType.FMA_GET
BY_STORES = frozenset({PostType.FMA_PUT, PostType.FMA_PUT_W_SYNCFLAG})


class Departure(NamedTuple):
    """When something leaves a NIC, ns of the clock.

    Attributes:
        first: its first packet, if nothing holds it up behind the NIC.
        last: its last one.
    """

    first: int
    last: int


class GniClock(DeviceClock):
    """The clock of one device.

    Without it all times are 0, which is past.

    Attributes:
        link: to other hosts.
        way: ns from the last packet's departure until the peer's memory has it, but for the link.
        ack: ns from there to the event here.
        event: ns from there to an event there.
        atomic: ns that one takes in memory.
    """

    __slots__ = (
        "_blocks",
        "_costs",
        "_processor",
        "ack",
        "atomic",
        "event",
        "link",
        "way",
    )

    def __init__(self, context: RankContext, generation: str, values: Values) -> None:
        super().__init__(context.engine, context.network, wanted=values.clock)
        taken = timed(vars(values), TIMINGS[generation])
        costs = {name.removeprefix(f"{generation}_"): cost for name, cost in taken.items()}
        self.link: Link = costs.pop("link")
        self._costs: dict[str, Cost] = costs
        self.way: int = costs["way"].fixed
        self.ack: int = costs["ack"].fixed
        self.event: int = costs["event"].fixed
        self.atomic: int = costs["atomic"].fixed
        self._processor = Stage()
        self._blocks = Stage()

    # -- the processor alone

    def works(self, what: str, size: int) -> None:
        """The processor does something else with the device: `register`, `deregister`, `copy`."""
        if self.runs:
            self._processor.schedule_work(self.now(), self._costs[what].of(size))

    # -- what leaves

    def stores(self, what: str, size: int) -> Departure:
        """The processor stores something to the NIC: `fma_put`, `fma_get`, `smsg`, `amo`."""
        if not self.runs:
            return Departure(0, 0)
        duration = self._lasts(what, size)
        return _departure(self._processor.schedule_work(self.now(), duration), duration)

    def post(self, post: PostDescriptor) -> Departure:
        """A put leaves this NIC; of a get, its bytes have come through it but for the two ways."""
        if not self.runs:
            return Departure(0, 0)
        type_, size = post.type, len(post.local)
        if type_ in BY_STORES:
            return self.stores("fma_put", size)
        if type_ is FMA_GET:
            return self.stores("fma_get", size)
        called = self._processor.schedule_work(self.now(), self._costs["bte_post"].of(size))
        duration = self._lasts("bte_put" if type_ is RDMA_PUT else "bte_get", size)
        return _departure(self._blocks.schedule_work(called, duration), duration)

    def _lasts(self, what: str, size: int) -> int:
        """What a stage takes for bytes that leave, which are cut into packets meanwhile."""
        return max(self._costs[what].of(size), self._costs["packets"].of(size))

    def over_link(self, leaves: Departure, size: int) -> int:
        """When to give bytes to the link, so that the last of them passes it with `last`."""
        if not self.runs:
            return 0
        passing = size * 8_000 // self.link.bandwidth if self.link.bandwidth else 0
        return max(leaves.first, leaves.last - passing) + self.way


def _departure(end: int, duration: int) -> Departure:
    return Departure(end - duration, end)
