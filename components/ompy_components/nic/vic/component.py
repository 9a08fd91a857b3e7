"""vic's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import API, Nic, NicComponent, interfaces_for
from ompy.frameworks.nic.clock_parameters import clock_parameters
from ompy.frameworks.nic.datagram import DatagramNic
from ompy.mca.parameter import Parameter

from ompy_components.nic.vic.timings import TIMINGS


class VicComponent(NicComponent):
    """An emulated VIC behind each network interface."""

    name: ClassVar[str] = "vic"
    kinds: ClassVar[tuple[type[Nic], ...]] = (DatagramNic,)
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "mtu",
            "int",
            0,
            "Bytes of the largest packet, IP header included; 0 takes the interface's, at most "
            "9000. The same at both ends.",
            level=2,
            unit="bytes",
            minimum=0,
            maximum=65_535,
        ),
        Parameter(
            "queue_depth",
            "int",
            1024,  # reference usnic.md 20: as libfabric's udp provider; a real VIC has 4095
            "Work entries of a send or a receive queue at most.",
            level=5,
            unit="work entries",
            minimum=1,
        ),
        Parameter(
            "queue_pairs",
            "int",
            6,  # arbitrary: three times what the usnic BTL needs (reference usnic.md 2)
            "Queue pairs a virtual function has, and completion queues.",
            level=6,
            unit="queue pairs",
            minimum=1,
        ),
        Parameter(
            "inline_size",
            "int",
            768,  # seed usnic: a tiny message, sent inline, has up to 768 bytes
            "Bytes a work entry of a send queue has room for.",
            level=5,
            unit="bytes",
            minimum=0,
        ),
        *clock_parameters(*TIMINGS),
    )

    def devices(self, context: RankContext) -> list[Nic]:
        """One per interface; loopback alone when the whole job is on this host, else the others."""
        from ompy_components.nic.vic.device import Vic

        return [
            Vic(context.network, index, interface, self.values, context.engine)
            for index, interface in enumerate(interfaces_for(context))
        ]


COMPONENT = VicComponent()
