"""hca's identity and parameters."""

from __future__ import annotations

from typing import ClassVar, Final

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import API, Nic, NicComponent, interfaces_for
from ompy.frameworks.nic.clock_parameters import clock_parameters
from ompy.frameworks.nic.verbs import VerbsNic
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Parameter

from ompy_components.nic.hca.timings import TIMINGS

MTU_MIN: Final = 256  # bytes; InfiniBand specification 1, reference: the smallest path MTU


class HcaComponent(NicComponent):
    """An emulated RDMA adapter behind each network interface."""

    name: ClassVar[str] = "hca"
    kinds: ClassVar[tuple[type[Nic], ...]] = (VerbsNic,)
    version: ClassVar[str] = "0.1.0"
    wire_formats: ClassVar[str] = "ompy_components.nic.hca.wire:WIRE"
    api: ClassVar[tuple[int, int]] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "mtu",
            "int",
            0,
            "Bytes of payload in one packet (256 to 65000); 0 takes 4096 on loopback, and what "
            "fits the interface, up to 4096, elsewhere.",
            level=2,
            unit="bytes",
            minimum=0,
            maximum=65_000,  # a datagram has up to 65507 bytes, headers included
        ),
        Parameter(
            "queue_depth",
            "int",
            16_384,  # arbitrary: about what a ConnectX-3 has, 16351
            "Work entries of a send, receive or shared receive queue at most.",
            level=5,
            unit="work entries",
            minimum=1,
        ),
        Parameter(
            "queue_pairs",
            "int",
            65_536,  # arbitrary: a ConnectX-3 has 392632; one is some kilobytes here
            "Queue pairs a device has.",
            level=6,
            unit="queue pairs",
            minimum=1,
            maximum=1 << 20,
        ),
        Parameter(
            "inline_size",
            "int",
            256,  # arbitrary: ConnectX cards have up to some hundred
            "Bytes a work entry of a send queue has room for; not more than a packet.",
            level=5,
            unit="bytes",
            minimum=0,
        ),
        Parameter(
            "max_reads",
            "int",
            4,  # reference openmpi.md 5.6: ib_qp_ous_rd_atom
            "RDMA reads and atomics of one queue pair under way at most; more wait.",
            level=6,
            unit="operations",
            minimum=1,
            maximum=64,  # results of so many atomics are kept
        ),
        Parameter(
            "window",
            "int",
            0,
            "Packets of one queue pair that may be under way without an acknowledgement; 0 takes "
            "as many as 128 KiB have, 4 to 64.",
            level=5,
            unit="packets",
            minimum=0,
            maximum=2048,  # an answer to a read has up to half as many packets
        ),
        Parameter(
            "reordering",
            "int",
            20,  # arbitrary: longer than one packet takes here, shorter than a round trip
            "How long a packet that has overtaken others waits for them before they are taken for "
            "lost.",
            level=6,
            unit="us",
            minimum=0,
            maximum=100_000,
        ),
        *clock_parameters(*TIMINGS),
    )

    def devices(self, context: RankContext) -> list[Nic]:
        """One per interface; loopback alone when the whole job is on this host, else the others."""
        from ompy_components.nic.hca.device import Hca
        from ompy_components.nic.hca.memory import DEVICES_MAX

        if self.values.mtu and self.values.mtu < MTU_MIN:
            raise NotAvailable(f"nic_hca_mtu is {self.values.mtu}; it has {MTU_MIN} at least, or 0")
        return [
            Hca(context, index, interface, self.values)
            for index, interface in enumerate(interfaces_for(context)[:DEVICES_MAX])
        ]


COMPONENT = HcaComponent()
