"""What the work of an emulated VIC takes, in simulated worlds: a VIC 1225 behind a Nexus 3548.

Published is the whole way of a small message between two cards without a switch, 1.7 us (Squyres,
"Cisco ultra low latency support for MPI", 2012). A DMA read over PCIe takes 547 ns of it
(Neugebauer et al., "Understanding PCIe performance for end host networking", 2018: median of 64
bytes on a Xeon E5), so a posted write, which crosses the bus once, about half: the doorbell, and at
the other end the packet with its completion. What is left are the two devices' own work, in halves.
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.nic.clock import Cost
from ompy.frameworks.nic.clock_parameters import Timing
from ompy.net.base import Link

WHOLE: Final = 1_700  # ns; measured, Squyres 2012: half a round trip of verbs, back to back
READ: Final = 547  # ns; measured, Neugebauer et al. 2018, 6.2
WRITE: Final = READ // 2
DEVICE: Final = (WHOLE - READ - 2 * WRITE) // 2
SWITCH: Final = 190  # ns; measured, Squyres 2012: port to port through a Nexus 3548
BUFFER: Final = 6_000_000  # bytes; reference Cisco C11-715262 (2012): one of three, for 16 ports
LANES: Final = 8_000  # MB/s; reference Cisco UCS VIC 1225 data sheet: PCIe 2.0, 16 lanes
RATE: Final = 10_000  # Mbit/s; reference, the same: each port

TIMINGS: Final = (
    Timing(
        "inline",
        "the processor's copy of a packet into its work entry",
        Cost(5, LANES // 2),
        "5 ns: openucx/ucx, ib_iface.c; the rate: arbitrary: a processor's stores reach half of "
        "what DMA does",
    ),
    Timing(
        "doorbell",
        "the processor's store that rings a doorbell",
        Cost(WRITE),
        "half of a DMA read of Neugebauer et al. 2018",
    ),
    Timing(
        "fetch",
        "a DMA read of a work entry, or of a packet that is not inline",
        Cost(READ, LANES),
        "Neugebauer et al. 2018; Cisco VIC 1225 data sheet",
    ),
    Timing(
        "send",
        "making a packet, one after another",
        Cost(DEVICE),
        "what is left of Squyres 2012, the sender's half",
    ),
    Timing(
        "link",
        "a link through a switch, and the receiving device up to the completion",
        Link(SWITCH + DEVICE + WRITE, RATE, BUFFER, DEVICE),
        "Squyres 2012, its other half; VIC 1225 data sheet; the buffer: Cisco C11-715262",
    ),
)
