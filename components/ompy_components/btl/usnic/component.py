"""usnic's identity and parameters."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ompy.frameworks.btl import (
    API,
    EXCLUSIVITY_DEFAULT,
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
from ompy.mca.parameter import Flag, Parameter
from ompy.mca.performance import PerformanceVariable

CHANCE_LOSS: Final = 0.02  # as in reliability/congestion_window.py, which is imported later
EAGER_ALONE: Final = 150 * 1024  # reference usnic.md 3: with exactly one module


def _depth(name: str, what: str) -> Parameter:
    text = f"{what} -1 takes what the NIC has; 127 on the priority channel."
    return Parameter(name, "int", -1, text, level=5, unit="work entries", minimum=-1)


def _taken(name: str, type: str, default: object, why: str, **rest: Any) -> Parameter:  # noqa: A002
    """A parameter of Open MPI's that has no meaning here."""
    text = f"Open MPI's; no meaning here: {why}"
    return Parameter(name, type, default, text, level=9, flags=Flag.WITHOUT_MEANING, **rest)


# reference usnic.md 17: name, type and default
WITHOUT_MEANING: Final = (
    _taken("mpool_hints", "string", "", "all packets of a module come from one pool of its own."),
    _taken("rcache", "string", "grdma", "packets are registered once; what is put is not."),
    _taken(
        "want_numa_device_assignment",
        "bool",
        True,
        "an emulated NIC is worked by the rank's own processor, so none is farther than another.",
    ),
    _taken(
        "av_eq_num",
        "int",
        1024,
        "addresses of peers need no resolving, so there is no queue of answers.",
        unit="events",
        minimum=1,
    ),
)


class UsnicComponent(BtlComponent):
    """Reaches every rank over the datagram NICs of its host."""

    name: ClassVar[str] = "usnic"
    version: ClassVar[str] = "0.1.0"
    wire_formats: ClassVar[str] = "ompy_components.btl.usnic.wire:WIRE"
    api: ClassVar[tuple[int, int]] = API
    emulated: ClassVar[bool] = True
    exclusive: ClassVar[tuple[tuple[str, str], ...]] = (("if_include", "if_exclude"),)
    grows: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = Capabilities(
        reach="network", wire="datagram", ordered=False, checksum=True, heals=True
    )
    pvars: ClassVar[tuple[PerformanceVariable, ...]] = (
        PerformanceVariable("retransmissions", "Packets that were sent again.", "packets"),
        PerformanceVariable(
            "num_timeout_retrans",
            "Packets that were sent again as their time had run out.",
            "packets",
        ),
        PerformanceVariable(
            "num_fast_retrans",
            "Packets that were sent again as acknowledgements told of a gap.",
            "packets",
        ),
        PerformanceVariable(
            "num_total_sends",
            "Packets sent, acknowledgements and those sent again among them.",
            "packets",
        ),
        PerformanceVariable("num_total_recvs", "Packets received, of whatever kind.", "packets"),
        PerformanceVariable(
            "num_frag_sends",
            "Fragments sent in one packet each, without those sent again.",
            "packets",
        ),
        PerformanceVariable(
            "num_chunk_sends",
            "Pieces of longer fragments sent, without those sent again.",
            "packets",
        ),
        PerformanceVariable("num_ack_sends", "Acknowledgements sent.", "packets"),
        PerformanceVariable("num_ack_recvs", "Acknowledgements received.", "packets"),
        PerformanceVariable("num_dup_recvs", "Packets received that were here already.", "packets"),
        PerformanceVariable("num_crc_errors", "Packets received that were damaged.", "packets"),
        PerformanceVariable(
            "num_overruns", "Packets lost as no receive buffer was posted.", "packets"
        ),
        PerformanceVariable("num_window_full", "Sends that found the window used up.", "sends"),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *common_parameters(
            exclusivity=EXCLUSIVITY_DEFAULT,
            eager_limit=EAGER_ALONE,
            rndv_eager_limit=500,
            max_send_size=EAGER_ALONE,
            latency=2,
            bandwidth=0,
            flags=SEND | SEND_INPLACE | PUT | RDMA_COMPLETION,
            rdma_pipeline_send_length=EAGER_ALONE,
            rdma_pipeline_frag_size=EAGER_ALONE,
            min_rdma_pipeline_size=0,
            put_limit=EAGER_ALONE,  # reference usnic.md 3: as the eager limit
            put_alignment=1,
        ),
        Parameter(
            "nic",
            "string",
            "vic",
            "Component of the NICs: vic is emulated, libfabric has the real library's datagrams "
            "over its provider udp.",
            level=3,
        ),
        Parameter(
            "if_include",
            "string",
            "",
            "NICs to use, by name of device or interface or as address/bits, separated by commas. "
            "Empty: all that if_exclude leaves.",
            level=1,
            check=check_words,
        ),
        Parameter(
            "if_exclude",
            "string",
            "",
            "NICs not to use, written alike. Only one of if_include and if_exclude may be set.",
            level=1,
            check=check_words,
        ),
        Parameter(
            "max_btls",
            "int",
            0,
            "NICs to use at most, of those that are left; 0 for all.",
            level=2,
            unit="NICs",
            minimum=0,
        ),
        _depth("sd_num", "Entries of the data channel's send queue, at least 16."),
        _depth("rd_num", "Receive buffers of the data channel; the NIC drops what arrives beyond."),
        _depth("prio_sd_num", "Entries of the priority channel's send queue, at least 16."),
        _depth(
            "prio_rd_num",
            "Receive buffers of the priority channel; the NIC drops what arrives beyond.",
        ),
        Parameter(
            "cq_num",
            "int",
            -1,
            "Entries of each channel's completion queue; -1 takes what its send and receive queues "
            "need together, and fewer cannot be had.",
            level=6,
            unit="completions",
            minimum=-1,
        ),
        Parameter(
            "base_udp_port",
            "int",
            0,  # reference usnic.md 17
            "First UDP port: the rank that is the n-th of its host, counted from 0, takes this one "
            "and 2n more for its priority channel, the next for its data channel. 0: any ports.",
            level=6,
            unit="port",
            minimum=0,
            maximum=65_534,
        ),
        Parameter(
            "pack_lazy_threshold",
            "int",
            16_384,  # reference usnic.md 17
            "Bytes of a fragment of more than one packet from which on payload that is not "
            "contiguous is packed when its packets are sent; shorter ones are packed at once. "
            "-1: all are.",
            level=5,
            unit="bytes",
            minimum=-1,
        ),
        Parameter(
            "priority_limit",
            "int",
            0,
            "Bytes of a packet on the priority channel, headers included; 0 for 768.",
            level=5,
            unit="bytes",
            minimum=0,
        ),
        Parameter(
            "all_data_on_data_channel",
            "bool",
            False,
            "Whether the priority channel carries ACKs only, as Open MPI's has since 2016.",
            level=6,
        ),
        Parameter(
            "retrans_timeout",
            "int",
            100_000,  # seed usnic: 100 ms
            "How long a packet waits for its ACK before it is sent again for the first time.",
            level=5,
            unit="us",
            minimum=2,
        ),
        Parameter(
            "retrans_timeout_max",
            "int",
            2_000_000,  # arbitrary: a healed path is found within 2 s
            "What doubling the time from one resend to the next leads to at most.",
            level=5,
            unit="us",
            minimum=2,
        ),
        Parameter(
            "retries_max",
            "int",
            0,
            "How often the oldest packet is sent again, each time after twice as long, while "
            "nothing gets through, before its path is given up. 0: for as long as the peer's "
            "process lives, which may compute and say nothing.",
            level=5,
            unit="attempts",
            minimum=0,
        ),
        Parameter(
            "ack_delay",
            "int",
            50,  # seed usnic: 50 us
            "How long an ACK waits for a packet it can go with.",
            level=5,
            unit="us",
            minimum=0,
        ),
        Parameter(
            "ack_iteration_delay",
            "int",
            0,  # reference usnic.md 17 has 4, and no time
            "Rounds of progress an ACK waits at most, where ack_delay is not over before. 0: the "
            "time alone counts, as in the seed; Open MPI counts 4 rounds and no time.",
            level=5,
            unit="rounds",
            minimum=0,
        ),
        Parameter(
            "max_resends_per_iteration",
            "int",
            16,  # reference usnic.md 17
            "Packets sent again in one round of progress at most.",
            level=5,
            unit="packets",
            minimum=1,
        ),
        Parameter(
            "congestion_control",
            "bool",
            True,
            "Whether losses and long round trips limit what is under way and lengthen timeouts, as "
            "TCP does it; otherwise the window and retrans_timeout alone count, as in the seed.",
            level=5,
        ),
        Parameter(
            "selective_ack",
            "bool",
            True,
            "With congestion control: whether ACKs say which packets behind a gap have arrived, so "
            "that all losses of a round trip are known at once. Each rank says it for what it "
            "receives.",
            level=5,
        ),
        Parameter(
            "chance_loss",
            "double",
            100 * CHANCE_LOSS,
            "With congestion control: how much loss is taken for chance and does not make the "
            "sender send less, while round trips are short. 0 is TCP's way; more takes from others "
            "who share a link with short queues.",
            level=5,
            unit="%",
            minimum=0,
            maximum=100,
        ),
        Parameter(
            "max_short_packets",
            "int",
            25,  # reference usnic.md 17
            "How many packets that are too short for a header a NIC takes in before the rank warns "
            "of them, once; 0 for never.",
            level=5,
            unit="packets",
            minimum=0,
        ),
        Parameter(
            "show_route_failures",
            "bool",
            True,  # reference usnic.md 17
            "Whether a rank warns when a peer has usnic and none of its NICs can be reached: no "
            "route leads there, or its packets have another size.",
            level=3,
        ),
        Parameter(
            "connectivity_check",
            "bool",
            True,  # reference usnic.md 17
            "Whether each new peer is pinged with packets of two sizes, to find an MTU black hole.",
            level=5,
        ),
        Parameter(
            "connectivity_ack_timeout",
            "int",
            250,  # reference usnic.md 17
            "How long a ping has for its answer before the next one is sent.",
            level=6,
            unit="ms",
            minimum=1,
        ),
        Parameter(
            "connectivity_error_num_retries",
            "int",
            40,  # reference usnic.md 17
            "Pings of the full size that may stay without answer while small ones get theirs.",
            level=6,
            unit="pings",
            minimum=0,
        ),
        Parameter(
            "connectivity_map",
            "string",
            "",  # reference usnic.md 17: none
            "Prefix of files that say, for each rank, which interface of each peer is reached by "
            "which of its own: PREFIX-HOST.rankN.txt, written by MPI_Finalize. Empty for none.",
            level=4,
        ),
        Parameter(
            "stats",
            "int",
            0,  # reference usnic.md 17
            "How often each module writes what it has counted to standard error, and at its end; 0 "
            "for never.",
            level=4,
            unit="s",
            minimum=0,
        ),
        Parameter(
            "stats_relative",
            "bool",
            False,  # reference usnic.md 17
            "Whether such a report counts from the last one on.",
            level=4,
        ),
        Parameter(
            "free_list_max",
            "int",
            -1,
            "Fragments and packets to a peer that may be under way or wait; -1 for any number.",
            level=5,
            unit="fragments",
            minimum=-1,
        ),
        *WITHOUT_MEANING,
    )

    def init(self, context: RankContext) -> list[BtlModule]:
        """One module per NIC chosen."""
        if context.size < 2 and not context.expects_others:
            return []  # nobody to reach
        from ompy.frameworks.nic.base import NicError
        from ompy.frameworks.nic.datagram import DatagramNic

        from ompy_components.btl.usnic import interfaces, modex
        from ompy_components.btl.usnic.module import UsnicModule

        values = self.values
        nics = context.find_nics(DatagramNic, values.nic)
        if not nics:
            raise NotAvailable(
                f"nic component {values.nic!r} has no datagram NIC here; `ompy-info --plugins` may "
                "say why"
            )
        chosen = interfaces.choose_devices(context, nics, values.if_include, values.if_exclude)
        chosen = chosen[: values.max_btls or None]
        if not chosen:
            raise NotAvailable("no datagram NIC is left to use")
        try:
            modules = [
                UsnicModule(context, values, nic, index, len(chosen))
                for index, nic in enumerate(chosen)
            ]
        except NicError as problem:  # too few entries of a queue, or a port that is taken
            raise NotAvailable(str(problem)) from problem
        if values.connectivity_map:
            from ompy_components.btl.usnic.connectivity.connectivity_map import ConnectivityMap

            common = ConnectivityMap(values.connectivity_map)
            for module in modules:
                module.map = common
                common.add_module(module)
        records = modex.pack_records([module.record for module in modules])
        context.wireup.publish(modex.KEY, records)
        return list(modules)


COMPONENT = UsnicComponent()
