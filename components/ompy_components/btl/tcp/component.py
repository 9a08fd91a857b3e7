"""tcp's identity and parameters."""

from __future__ import annotations

from typing import ClassVar, Final

from ompy.frameworks.btl import (
    API,
    HETEROGENEOUS_RDMA,
    NEED_ACK,
    NEED_CSUM,
    PUT,
    RDMA_COMPLETION,
    SEND,
    SEND_INPLACE,
    BtlComponent,
    BtlModule,
)
from ompy.frameworks.btl_base.btl_parameters import common_parameters
from ompy.frameworks.btl_base.interface_words import check_words
from ompy.frameworks.capabilities import Capabilities
from ompy.frameworks.context import RankContext
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Parameter
from ompy.mca.performance import LEVEL, PerformanceVariable

TRANSFER_MAX: Final = (1 << 31) - 1024  # bytes; reference openmpi.md 3.13, tcp (4.1)
# reference openmpi.md 3.13: no GET unless asked for
FLAGS: Final = (
    SEND | PUT | SEND_INPLACE | NEED_ACK | NEED_CSUM | RDMA_COMPLETION | HETEROGENEOUS_RDMA
)
LINKS_MAX: Final = 16  # arbitrary: the sixteenth counts for a thousandth of the bandwidth already
EXCLUDED = "127.0.0.1/8,sppp"  # reference openmpi.md 3.13


class TcpComponent(BtlComponent):
    """Reaches every rank over TCP. Defaults: reference openmpi.md 3.13, tcp (4.1)."""

    name: ClassVar[str] = "tcp"
    version: ClassVar[str] = "0.1.0"
    wire_formats: ClassVar[str] = "ompy_components.btl.tcp.wire:WIRE"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = (
        "ompy_components.btl.tcp.module",
        "ompy_components.btl.tcp.interfaces",
        "ompy_components.btl.tcp.remote",
    )
    grows: ClassVar[bool] = True
    exclusive: ClassVar[tuple[tuple[str, str], ...]] = (("if_include", "if_exclude"),)
    capabilities: ClassVar[Capabilities] = Capabilities(reach="network", wire="stream", heals=True)
    pvars: ClassVar[tuple[PerformanceVariable, ...]] = (
        PerformanceVariable(
            "bytes_sent",
            "Bytes that the kernel has sent, without those sent again.",
            "bytes",
        ),
        PerformanceVariable(
            "bytes_received",
            "Bytes that the kernel has received.",
            "bytes",
        ),
        PerformanceVariable(
            "retransmissions",
            "Segments that the kernel has sent again.",
            "segments",
        ),
        PerformanceVariable("connections", "Connections that are open.", "connections", LEVEL),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *common_parameters(
            exclusivity=100,
            eager_limit=64 * 1024,
            rndv_eager_limit=64 * 1024,
            max_send_size=128 * 1024,
            latency=100,
            bandwidth=100,
            flags=FLAGS,
            rdma_pipeline_send_length=128 * 1024,
            rdma_pipeline_frag_size=TRANSFER_MAX,
            min_rdma_pipeline_size=0,
            put_limit=TRANSFER_MAX,
            get_limit=TRANSFER_MAX,
            put_alignment=1,
            get_alignment=1,
        ),
        Parameter(
            "if_include",
            "string",
            "",
            "Interfaces to use, by name or as address/bits, separated by commas. Empty: loopback "
            "when the job is on one host, else all that if_exclude leaves.",
            level=1,
            check=check_words,
        ),
        Parameter(
            "if_exclude",
            "string",
            EXCLUDED,
            "Interfaces not to use, by name or as address/bits, separated by commas. Only one of "
            "if_include and if_exclude may be set.",
            level=1,
            check=check_words,
        ),
        Parameter(
            "links",
            "int",
            1,
            "Connections to each peer over each interface. Each is taken to have half the "
            "bandwidth and twice the latency of the one before it.",
            level=4,
            unit="connections",
            minimum=1,
            maximum=LINKS_MAX,
        ),
        Parameter(
            "port_min_v4",
            "int",
            0,
            "First port to listen at; 0 lets the system choose.",
            level=2,
            unit="port",
            minimum=0,
            maximum=65535,
        ),
        Parameter(
            "port_range_v4",
            "int",
            64511,
            "How many ports from port_min_v4 on may be tried.",
            level=2,
            unit="ports",
            minimum=1,
        ),
        Parameter(
            "free_list_max",
            "int",
            -1,
            "Fragments that may wait to be sent at a time; -1 for any number.",
            level=5,
            unit="fragments",
            minimum=-1,
        ),
        Parameter(
            "handshake_timeout_ms",
            "int",
            5000,  # arbitrary: far beyond a round trip; a scanner never proves anything
            "How long a connection may take to be made, and then, once let in, to prove "
            "that it belongs to the job. A peer that is busy may take any time to let it in.",
            level=6,
            unit="ms",
            minimum=1,
        ),
        Parameter(
            "probe_timeout_ms",
            "int",
            500,  # arbitrary: a packet lost once is sent again after 200 ms
            "How long an address of another host may take to answer before the interface is not "
            "used for that host, if there is another; 0 to use all without asking.",
            level=6,
            unit="ms",
            minimum=0,
        ),
        Parameter(
            "silence_ms",
            "int",
            1250,  # arbitrary: with the kernel's first repetition a dead rail is known in 2 s
            "How long the kernel of another host may acknowledge nothing of what ours repeats "
            "before the path is given up; 0 for the system's own patience of many minutes.",
            level=6,
            unit="ms",
            minimum=0,
        ),
        Parameter(
            "ack_delay_us",
            "int",
            1000,  # arbitrary: a fiftieth of ack_timeout_ms; an idle rank sleeps by then
            "How long an acknowledgement that no message waits for may wait for a fragment to go "
            "with, where a PML fails over.",
            level=6,
            unit="us",
            minimum=0,
        ),
        Parameter(
            "ack_bytes",
            "size_t",
            256 * 1024,  # arbitrary: two of the three fragments that a stream has under way
            "Bytes received that are acknowledged at once, where a PML fails over.",
            level=6,
            unit="bytes",
            minimum=1,
        ),
        Parameter(
            "ack_timeout_ms",
            "int",
            50,  # arbitrary: with the 350 ms of asking a silent rail is known well within 500
            "How long a peer may acknowledge nothing before the hosts' agents are asked whether "
            "the path still works, where a PML fails over; 0: they never are.",
            level=5,
            unit="ms",
            minimum=0,
        ),
        Parameter(
            "unacknowledged_max",
            "size_t",
            4 * 1024 * 1024,  # arbitrary: about what the kernels of both sides hold anyway
            "Bytes of fragments to one peer that may be unacknowledged, where a PML fails over.",
            level=5,
            unit="bytes",
            minimum=1,
        ),
        Parameter(
            "put_chunk",
            "size_t",
            512 * 1024,  # arbitrary: 4 ms of 1 Gbit/s
            "Bytes of a put after which other fragments may go before the rest of it, where a PML "
            "fails over and there is another path to the peer; 0: it goes in one piece.",
            level=6,
            unit="bytes",
            minimum=0,
        ),
        Parameter(
            "unsent_max",
            "size_t",
            1024 * 1024,  # arbitrary: 8 ms of 1 Gbit/s
            "Bytes that the kernel takes before it has sent them, to another host and where a PML "
            "fails over: what is said about a broken path waits behind them. 0: as it likes.",
            level=6,
            unit="bytes",
            minimum=0,
        ),
        Parameter(
            "half_open_max",
            "int",
            64,  # arbitrary: more than ranks connect to one rank at the same moment
            "Unproven connections held at a time; the oldest is dropped for a new one.",
            level=6,
            unit="connections",
            minimum=1,
        ),
        Parameter(
            "connect_tries",
            "int",
            10,  # arbitrary: with doubling pauses from 20 ms this is about 20 s
            "Attempts to connect to a peer before its path is given up.",
            level=6,
            unit="attempts",
            minimum=1,
        ),
        Parameter(
            "linger_ms",
            "int",
            1000,  # arbitrary: long enough for a peer that polls, short for one that computes
            "How long the end of a rank waits for its peers to close their connections too.",
            level=6,
            unit="ms",
            minimum=0,
        ),
    )

    def init(self, context: RankContext) -> list[BtlModule]:
        """One module per interface chosen and link."""
        from ompy_components.btl.tcp.interfaces import Probes, choose, publish
        from ompy_components.btl.tcp.module import TcpModule

        if context.size < 2 and not context.expects_others:
            return []  # nobody to reach
        values = self.values
        chosen = choose(context, values.if_include, values.if_exclude, EXCLUDED)
        if not chosen:
            raise NotAvailable("no interface is left to use")
        modules = []
        probes = Probes(context, values.probe_timeout_ms)
        for interface in chosen:
            for link in range(values.links):
                module = TcpModule(context, values, interface, probes)
                module.bandwidth = max(module.bandwidth >> link, 1)  # reference openmpi.md 3.13
                module.latency <<= link
                modules.append(module)
        publish(context, [(m.interface.address, m.listener.address.port) for m in modules])
        return list(modules)


COMPONENT = TcpComponent()
