"""ofi's identity and parameters."""

from __future__ import annotations

from typing import ClassVar, Final

from ompy.frameworks.btl import (
    API,
    ATOMIC_FOPS,
    ATOMIC_OPS,
    EXCLUSIVITY_DEFAULT,
    GET,
    PUT,
    RDMA_COMPLETION,
    SEND,
    BtlComponent,
    BtlModule,
)
from ompy.frameworks.btl_base.btl_parameters import common_parameters
from ompy.frameworks.btl_base.interface_words import check_words
from ompy.frameworks.capabilities import Capabilities
from ompy.frameworks.context import RankContext
from ompy.mca.component import NotAvailable
from ompy.mca.enumerators import Enumerator
from ompy.mca.parameter import Parameter
from ompy.mca.performance import PerformanceVariable
from ompy.net.seals.replay import WINDOW

EXCLUDED: Final = "127.0.0.1/8,sppp"  # as btl/tcp's: reference openmpi.md 3.13

# words and numbers as Open MPI has them; reference ofi.md A1
MODES: Final = {"one-sided": 0, "two-sided": 1, "both": 2}
PROGRESS: Final = {"unspec": 0, "auto": 1, "manual": 2}


def _number(
    name: str,
    default: int,
    text: str,
    unit: str,
    *,
    level: int = 5,
    minimum: int = 0,
    maximum: int | None = None,
) -> Parameter:
    return Parameter(
        name, "int", default, text, level=level, unit=unit, minimum=minimum, maximum=maximum
    )


SELECTION: Final = (
    Parameter(
        "mode",
        "int",
        2,  # reference ofi.md A1, main
        "What it is used for: put, get and atomics (one-sided), messages (two-sided), or both.",
        level=5,
        unit="mode",
        enumerator=Enumerator(MODES),
    ),
    Parameter(
        "nic",
        "string",
        "",
        "The nic component whose fabric devices are used: libfabric, or ofi_emulated for its twin. "
        "Empty: libfabric, and in the virtual world ofi_emulated.",
        level=2,
    ),
    Parameter(
        "provider_include",
        "string",
        "",
        "Providers to use, by prefixes of their names, separated by commas, such as tcp;ofi_rxm. "
        "Empty: all that btl_ofi_provider_exclude leaves, but for those that strangers can crash "
        "(nic_libfabric_exposed), which have to be named.",
        level=1,
    ),
    Parameter(
        "provider_exclude",
        "string",
        "",
        "Providers not to use, written alike. The word stock stands for Open MPI's list: shm, "
        "sockets, tcp, udp, rstream, usnic, net, and all on top of ofi_rxm.",
        level=1,
    ),
    Parameter(
        "domain_include",
        "string",
        "",
        "Domains to use, by name, separated by commas: for providers over IP those of interfaces, "
        "such as eth0. Empty: any.",
        level=2,
    ),
    Parameter(
        "if_include",
        "string",
        "",
        "Interfaces to use, by name or as address/bits, separated by commas; a domain that is no "
        "interface's by its name. Empty: loopback when the job is on one host, else all that "
        "if_exclude leaves.",
        level=1,
        check=check_words,
    ),
    Parameter(
        "if_exclude",
        "string",
        EXCLUDED,
        "Interfaces not to use, written alike. Only one of if_include and if_exclude may be set.",
        level=1,
        check=check_words,
    ),
    _number(
        "max_btls",
        16,  # reference ofi.md A1: modules of 4.1
        "Domains to use of the provider that is taken, each by a module of its own: for providers "
        "over IP one for each interface. 1: the first one alone, as in the seed.",
        "modules",
        level=2,
        minimum=1,
    ),
    _number(
        "probe_timeout_ms",
        500,  # arbitrary: as btl/tcp's
        "How long an address of another host may take to answer before the interface is not used "
        "for that host, if there is another; 0 to use all without asking.",
        "ms",
        level=6,
    ),
    Parameter(
        "progress_mode",
        "int",
        0,  # reference ofi.md A1
        "Who is asked to move things: the provider as it likes (unspec), by itself (auto), or when "
        "its queues are read (manual).",
        level=5,
        unit="mode",
        enumerator=Enumerator(PROGRESS),
    ),
)

TUNING: Final = (
    _number(
        "num_cq_read",
        64,  # reference ofi.md A1
        "Completions read from a queue at a time; 128 at most.",
        "completions",
        minimum=1,
    ),
    _number(
        "num_contexts_per_module",
        1,  # reference ofi.md A1
        "Transmit contexts, of a scalable endpoint where there are several: each thread that posts "
        "owns one. More than 1 have not been seen to gain.",
        "contexts",
        minimum=1,
    ),
    Parameter(
        "disable_sep",
        "bool",
        False,  # reference ofi.md A1
        "Whether no scalable endpoint is used though the provider has them.",
        level=5,
    ),
    _number(
        "progress_threshold",
        64,  # reference ofi.md A1
        "Puts, gets and atomics outstanding from which on each new one reads completions first.",
        "operations",
        minimum=1,
    ),
    _number(
        "rd_num",
        16,  # arbitrary: half of it is one acknowledgement; Open MPI has 10 for all peers
        "Receive buffers posted for each peer: so many fragments it may send ahead.",
        "buffers",
        minimum=1,
        maximum=WINDOW,  # what is overtaken by more of them is taken for a repetition
    ),
    _number(
        "rd_max",
        512,  # arbitrary: 16 MiB of the default size
        "Receive buffers posted for all peers together, of which each has at least one.",
        "buffers",
        minimum=1,
    ),
    Parameter(
        "disable_inject",
        "bool",
        False,  # reference ofi.md A1
        "Whether small messages are posted like large ones.",
        level=5,
    ),
    Parameter(
        "seal",
        "string",
        "auto",
        "What proves that a message is of this job: a token of its sender, or a MAC of all of it.",
        level=5,
        choices={
            "auto": "token on one host, MAC as soon as the job has two",
            "token": "always a token",
            "mac": "always a MAC",
        },
    ),
    _number(
        "silence_ms",
        50,  # arbitrary: as btl/tcp's ack_timeout_ms
        "How long something may be under way to a peer that nothing is heard of, until the hosts' "
        "agents are asked about the path; 0: they are not.",
        "ms",
    ),
)


class OfiComponent(BtlComponent):
    """Reaches every rank over libfabric."""

    name: ClassVar[str] = "ofi"
    version: ClassVar[str] = "0.1.0"
    wire_formats: ClassVar[str] = "ompy_components.btl.ofi.wire:WIRE"
    api: ClassVar[tuple[int, int]] = API
    on_request: ClassVar[bool] = True
    exclusive: ClassVar[tuple[tuple[str, str], ...]] = (
        ("provider_include", "provider_exclude"),
        ("if_include", "if_exclude"),
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        reach="network", wire="stream", ordered=False, heals=True
    )
    pvars: ClassVar[tuple[PerformanceVariable, ...]] = (
        PerformanceVariable("fragments", "Fragments sent.", "fragments"),
        PerformanceVariable(
            "injected", "Fragments that the provider took a copy of at once.", "fragments"
        ),
        PerformanceVariable(
            "acknowledgements", "Acknowledgements sent, where a PML fails over.", "messages"
        ),
        PerformanceVariable("puts", "RDMA writes begun.", "operations"),
        PerformanceVariable("gets", "RDMA reads begun.", "operations"),
        PerformanceVariable("atomics", "Atomic operations begun.", "operations"),
        PerformanceVariable("paths_broken", "Paths to peers that broke.", "paths"),
        PerformanceVariable("paths_healed", "Paths to peers that were taken back.", "paths"),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *common_parameters(
            exclusivity=EXCLUSIVITY_DEFAULT,  # reference ofi.md A1
            eager_limit=8 << 10,  # arbitrary: what tcp;ofi_rxm sends without asking, with headers
            rndv_eager_limit=8 << 10,
            max_send_size=32 << 10,  # arbitrary: one copy fits the cache; larger ones go by get
            latency=10,  # reference ofi.md C2: tcp;ofi_rxm
            bandwidth=10_000,  # arbitrary: between tcp's 100 and a fast fabric's
            flags=SEND | PUT | GET | RDMA_COMPLETION | ATOMIC_OPS | ATOMIC_FOPS,
            rdma_pipeline_send_length=8 << 10,  # reference ofi.md A1, as the next
            rdma_pipeline_frag_size=4 << 20,
            min_rdma_pipeline_size=0,
            put_limit=8 << 20,  # reference ofi.md A1, as the next
            get_limit=8 << 20,
            put_alignment=1,
            get_alignment=1,
        ),
        *SELECTION,
        *TUNING,
    )

    def init(self, context: RankContext) -> list[BtlModule]:
        """One module for each domain of the first provider that can be used."""
        if context.size < 2:
            return []  # nobody to reach
        from ompy.frameworks.nic.base import NicError

        from ompy_components.btl.ofi.selection import bring_up

        try:
            return list(bring_up.modules(context, self.values))
        except NicError as problem:
            raise NotAvailable(str(problem)) from problem


COMPONENT = OfiComponent()
