"""What the work of each generation takes, and where the numbers come from: the table of README.md.

Two of them are set so that the model has a size at which another way begins to pay where it was
published: the block transfer engine's start-up by the cut-over of 4,096 bytes from the processor's
stores, and what giving a registration back takes by that of 8,192 bytes from bounce buffers. Where
the size really is, with all that happens on the way, is what docs/figures/gasnet-crossover.csv has.
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.nic.clock import Cost
from ompy.frameworks.nic.clock_parameters import Timing
from ompy.net.base import Link

from ompy_components.nic.gni.generations import ARIES, GEMINI

PAGE: Final = 4_096  # bytes; x86's
PACKET: Final = 64  # bytes; Pedretti et al., SAND2013-0216C: a transaction of Gemini

UCX: Final = "UCX, uct/ugni"
EUROBEN: Final = "EuroBen, the Cray XE6, 2010"
HOPPER: Final = "SST/macro, configuration of Hopper"
EDISON: Final = "SST/macro, configuration of Edison"
ONE_SIDED: Final = "Gerstenberger, Besta, Hoefler, SC13"
CUT_OVER: Final = "follows from GASNet's cut-over of 4096 bytes"
BOUNCES: Final = "follows from GASNet's cut-over of 8192 bytes"
AS_GEMINI: Final = "none published: as Gemini's"
HALF: Final = "arbitrary: a processor's stores reach half of what block transfers do"

_WORK: Final = {
    "fma_put": "a put by the processor's stores, from its descriptor to the last store",
    "fma_get": "a get by the processor's stores, from its descriptor to the last request",
    "smsg": "a short message by the processor's stores",
    "amo": "the processor's stores for an atomic or a queue write",
    "bte_post": "the processor's call for a block transfer",
    "bte_put": "the block transfer engine's put, from start-up to the last byte",
    "bte_get": "the block transfer engine's get, from start-up to the last byte",
    "packets": "the NIC's cutting into packets, beside the above",
    "way": "the way through both NICs, without the link",
    "ack": "the way from the peer's memory to the event here",
    "event": "an event at the peer, behind what it is about",
    "atomic": "an atomic in the peer's memory",
    "register": "the processor's call for a registration, and its pages",
    "deregister": "the processor's call to give one back",
    "copy": "the processor's copy to or from a bounce buffer",
    "link": "the link between hosts",
}

_Entry = tuple[Cost | Link, str]


def _timings(generation: str, **entries: _Entry) -> tuple[Timing, ...]:
    assert entries.keys() == _WORK.keys(), "each generation has all of it"
    return tuple(
        Timing(f"{generation}_{name}", f"on {generation.capitalize()}, {_WORK[name]}", *entry)
        for name, entry in entries.items()
    )


TIMINGS: Final = {
    GEMINI.name: _timings(
        GEMINI.name,
        fma_put=(Cost(80, 3_000), f"a post's overhead: {UCX}; the rate: {HALF}"),
        fma_get=(Cost(80, 3_000), f"a post's overhead: {UCX}; the rate: {HALF}"),
        smsg=(Cost(200, 3_000), f"arbitrary: a post and the search for a slot; the rate: {HALF}"),
        amo=(Cost(80), f"a post's overhead: {UCX}"),
        bte_post=(Cost(300), f"arbitrary share of what {CUT_OVER}"),
        bte_put=(Cost(463, 6_000), f"start-up: {CUT_OVER}; measured rate: {EUROBEN}"),
        bte_get=(Cost(463, 6_000), f"start-up: {CUT_OVER}; measured rate: {EUROBEN}"),
        packets=(Cost(0, 0, 8, PACKET), f"64 bytes in 5 cycles of 650 MHz: {EUROBEN}"),
        way=(Cost(510), f"the least latency, 700 ns, less stores and link: {EUROBEN}"),
        ack=(Cost(200), f"of 1 us for a put, 0.7 us and a link less: {ONE_SIDED}"),
        event=(Cost(100), "arbitrary: a write to the peer's memory"),
        atomic=(Cost(1_000), f"of 2.4 us for an atomic, a way there and back less: {ONE_SIDED}"),
        register=(Cost(1_000, 0, 29, PAGE), f"1 us and 0.007 ns a byte: {UCX}"),
        deregister=(Cost(307), BOUNCES),
        copy=(Cost(15, 6_000), f"memory of one core: {HOPPER}"),
        link=(Link(100, 51_200), f"latency, and 8 x 0.8 GB/s: {HOPPER}"),
    ),
    ARIES.name: _timings(
        ARIES.name,
        fma_put=(Cost(80, 5_000), f"a post's overhead: {UCX}; the rate: {HALF}"),
        fma_get=(Cost(80, 5_000), f"a post's overhead: {UCX}; the rate: {HALF}"),
        smsg=(Cost(200, 5_000), f"arbitrary: a post and the search for a slot; the rate: {HALF}"),
        amo=(Cost(80), f"a post's overhead: {UCX}"),
        bte_post=(Cost(180), f"arbitrary share of what {CUT_OVER}"),
        bte_put=(Cost(310, 10_000), f"start-up: {CUT_OVER}; rate of injection: {EDISON}"),
        bte_get=(Cost(310, 10_000), f"start-up: {CUT_OVER}; rate of injection: {EDISON}"),
        packets=(Cost(0, 0, 6, PACKET), "64 bytes in 5 cycles of 800 MHz: Cray, WP-Aries01-1112"),
        way=(Cost(800), f"latency of 900 ns, a link less: {UCX}"),
        ack=(Cost(200), AS_GEMINI),
        event=(Cost(100), "arbitrary: a write to the peer's memory"),
        atomic=(Cost(1_000), AS_GEMINI),
        register=(Cost(1_000, 0, 29, PAGE), f"1 us and 0.007 ns a byte: {UCX}"),
        deregister=(Cost(307), AS_GEMINI),
        copy=(Cost(15, 6_000), AS_GEMINI),
        link=(Link(100, 80_000), f"latency, and the rate of injection: {EDISON}"),
    ),
}
ALL: Final = tuple(timing for timings in TIMINGS.values() for timing in timings)
