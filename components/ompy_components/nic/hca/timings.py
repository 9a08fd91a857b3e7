"""What the work of an adapter takes in simulated worlds: a ConnectX-3 on FDR InfiniBand.

Sources: openucx/ucx, src/uct/ib/base (the figures UCX reckons with); Kalia, Kaminsky, Andersen,
Using RDMA efficiently for key-value services, SIGCOMM 2014 (ConnectX-3); Neugebauer et al.,
Understanding PCIe performance for end host networking, SIGCOMM 2018.
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.nic.clock import Cost
from ompy.frameworks.nic.clock_parameters import Timing
from ompy.frameworks.nic.stations import PACKET, UCX, adapter_timings
from ompy.net.base import Link

PCIE: Final = "50 Gbit/s of PCIe 3.0 x8, Neugebauer et al. 2018"
# ns of 8 bytes inline from end to end over FDR; reference openucx/ucx, ib_iface.c
SMALL: Final = 700

TIMINGS: Final = adapter_timings(
    Timing(
        "send",
        "the sending engine's work",
        Cost(0, 6_250, 28, PACKET),
        f"35 million writes a second, Kalia et al. 2014; {PCIE}",
    ),
    Timing(
        "receive",
        "the receiving engine's work",
        Cost(0, 6_250, 38, PACKET),
        f"26 million requests a second, Kalia et al. 2014; {PCIE}",
    ),
    # what the stations leave of SMALL; four lanes of 14.0625 Gbaud, 64 of 66 bits
    Timing("link", "the link", Link(569, 54_545), f"{UCX}: 700 ns and 14.0625 Gbaud of FDR"),
)
