"""What the work of an adapter takes in simulated worlds: a ConnectX-3 on FDR InfiniBand.

Sources: openucx/ucx, src/uct/ib/base (the figures UCX reckons with); Kalia, Kaminsky, Andersen,
Using RDMA efficiently for key-value services, SIGCOMM 2014 (ConnectX-3); Neugebauer et al.,
Understanding PCIe performance for end host networking, SIGCOMM 2018.
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.nic.clock import Cost
from ompy.frameworks.nic.clock_parameters import Timing
from ompy.net.base import Link

UCX: Final = "openucx/ucx, ib_iface.c"
PCIE: Final = "50 Gbit/s of PCIe 3.0 x8, Neugebauer et al. 2018"
PACKET: Final = 4096  # InfiniBand specification 1, reference: the largest path MTU
# ns of 8 bytes inline from end to end over FDR: openucx/ucx, ib_iface.c
SMALL: Final = 700

TIMINGS: Final = (
    Timing("post", "ringing for a work entry", Cost(40), UCX),
    Timing("inline", "storing inline bytes beside it", Cost(5), UCX),
    Timing("fetch", "fetching an entry and its bytes that are not inline", Cost(350), UCX),
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
    Timing("complete", "writing a completion", Cost(20), UCX),
    Timing(
        "register",
        "registering memory",
        Cost(16_000, 16_667),
        "16 us and 0.06 ns a byte, openucx/ucx, ib_md.c",
    ),
    # what the stations leave of SMALL; four lanes of 14.0625 Gbaud, 64 of 66 bits
    Timing("link", "the link", Link(569, 54_545), f"{UCX}: 700 ns and 14.0625 Gbaud of FDR"),
)
