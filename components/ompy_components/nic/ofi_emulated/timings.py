"""What the work of the device takes in simulated worlds: a ConnectX-4 on EDR InfiniBand.

What libfabric drives by verbs;ofi_rxm. Sources: openucx/ucx, src/uct/ib/base (the figures UCX
reckons with); Mellanox, ConnectX-4 VPI product brief; Neugebauer et al., Understanding PCIe
performance for end host networking, SIGCOMM 2018.
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.nic.clock import Cost
from ompy.frameworks.nic.clock_parameters import Timing
from ompy.frameworks.nic.stations import PACKET, UCX, adapter_timings
from ompy.net.base import Link

ENGINE: Final = (
    "150 million messages a second, ConnectX-4 product brief; PCIe 3.0 x16, twice the 50 Gbit/s of "
    "x8 in Neugebauer et al. 2018"
)
# ns of 8 bytes inline from end to end over EDR; reference openucx/ucx, ib_iface.c
SMALL: Final = 600

TIMINGS: Final = adapter_timings(
    Timing("send", "the sending engine's work", Cost(0, 12_500, 7, PACKET), ENGINE),
    Timing("receive", "the receiving engine's work", Cost(0, 12_500, 7, PACKET), ENGINE),
    # what the stations leave of SMALL; four lanes of 25.78125 Gbaud, 64 of 66 bits
    Timing("link", "the link", Link(521, 100_000), f"{UCX}: 600 ns and 25.78125 Gbaud of EDR"),
)
