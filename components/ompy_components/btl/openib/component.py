"""openib's identity and parameters."""

from __future__ import annotations

from typing import ClassVar, Final

from ompy.frameworks.btl import (
    API,
    EXCLUSIVITY_DEFAULT,
    FAILOVER_SUPPORT,
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
from ompy.mca.parameter import Parameter
from ompy.mca.performance import PerformanceVariable

# reference openmpi.md 3.13 and 5.6
EAGER: Final = 12_288
LARGEST: Final = 65_536
MIB: Final = 1 << 20
TRANSFER_MAX: Final = (
    1 << 30
)  # arbitrary: half of what a message may have, 2 GiB by the specification


def _words(name: str, text: str) -> Parameter:
    return Parameter(name, "string", "", text, level=1, check=check_words)


def _number(
    name: str,
    default: int,
    text: str,
    unit: str,
    *,
    level: int = 5,
    minimum: int | None = 0,
    maximum: int | None = None,
) -> Parameter:
    return Parameter(
        name, "int", default, text, level=level, unit=unit, minimum=minimum, maximum=maximum
    )


PORTS: Final = (
    _words(
        "if_include",
        "Ports to use, by name of device or interface, separated by commas. Empty: all that the "
        "other three leave.",
    ),
    _words("if_exclude", "Ports not to use, written alike."),
    _words("ipaddr_include", "Ports to use, as address/bits of their networks."),
    _words("ipaddr_exclude", "Ports not to use, written alike."),
    _number("max_btls", -1, "Ports to use at most; -1 for all.", "ports", level=2, minimum=-1),
    Parameter(
        "warn_nonexistent_if",
        "bool",
        True,
        "Whether to say so when a port that is named does not exist.",
        level=9,
    ),
)

QUEUES: Final = (
    Parameter(
        "receive_queues",
        "string",
        "",
        "Queue pairs of a connection and their buffers, with ascending sizes, separated by colons: "
        "P,size,num,low,win,rsv or S,size,num,low,sd_max,rd_init,srq_limit. The same on every "
        "rank. Empty: four shared ones for 128 bytes, a sixth of the eager limit, the eager limit "
        "and max_send_size.",
        level=4,
    ),
    Parameter(
        "enable_srq_resize",
        "bool",
        True,
        "Whether a shared queue begins with rd_init buffers and gets more when few are left.",
        level=5,
    ),
    _number(
        "cq_size",
        8192,
        "Completions each of the two queues has room for.",
        "completions",
        minimum=256,
    ),
    _number(
        "poll_cq_batch", 256, "Completions taken from a queue at a time.", "completions", minimum=1
    ),
    _number(
        "hp_cq_poll_per_progress",
        10,
        "How often the queue of small fragments is asked in a "
        "round of progress, while it has something.",
        "polls",
        minimum=1,
    ),
    _number(
        "cq_poll_ratio",
        100,
        "Rounds of progress in which only the queue of small fragments "
        "is asked, as long as that has something.",
        "rounds",
        minimum=1,
    ),
    _number(
        "max_inline_data",
        -1,
        "Bytes that are handed to the device with the work entry; -1 for what it takes.",
        "bytes",
        minimum=-1,
    ),
    _number("free_list_num", 8, "Buffers of each size to begin with.", "fragments"),
    _number(
        "free_list_max",
        -1,
        "Buffers of each size at most; -1 for any number.",
        "fragments",
        minimum=-1,
    ),
    _number(
        "free_list_inc",
        32,
        "Buffers of a size that are made when there is none left.",
        "fragments",
        minimum=1,
    ),
)

TRIES: Final = (
    _number(
        "ib_timeout",
        13,  # README, row 132: 33 ms
        "How long a queue pair waits for an acknowledgement: 4.096 us doubled so often, 0 to 31.",
        "doublings",
        minimum=None,
    ),
    _number(
        "ib_retry_count",
        7,  # reference openmpi.md 5.6
        "How often it tries again, 0 to 7, when the path is not known to be alive.",
        "tries",
        minimum=None,
    ),
    _number(
        "ib_rnr_retry",
        7,  # reference openmpi.md 5.6
        "How often it tries again when a shared receive queue was empty, 0 to 7; 7 for ever.",
        "tries",
        minimum=None,
    ),
    _number(
        "ib_min_rnr_timer",
        12,  # README, row 132: 640 us
        "How long a sender waits that found it empty, as code 0 to 31 of the specification.",
        "code",
        minimum=None,
    ),
    _number(
        "ib_qp_ous_rd_atom",
        4,  # reference openmpi.md 5.6
        "RDMA reads of a connection that are under way at a time.",
        "reads",
        minimum=None,
    ),
    _number(
        "connect_udcm_timeout",
        50_000,  # arbitrary: many round trips, and soon enough for a lost datagram
        "How long a HELLO waits for its answer before it is sent again.",
        "us",
        minimum=1,
    ),
    _number(
        "connect_udcm_max_retry",
        25,  # reference openmpi.md 5.6
        "HELLOs without an answer after which a path is given up, unless it is known to be alive.",
        "tries",
        minimum=1,
    ),
)

EAGER_RDMA: Final = (
    _number(
        "use_eager_rdma",
        -1,
        "Whether peers that send much may write to a ring of buffers: 1 "
        "or 0; -1 if the device can do it.",
        "choice",
        minimum=-1,
        maximum=1,
    ),
    _number(
        "eager_rdma_threshold",
        16,
        "Eager fragments of a peer before it gets a ring.",
        "messages",
        minimum=1,
    ),
    _number("max_eager_rdma", 16, "Peers that get a ring at most.", "peers"),
    _number("eager_rdma_num", 16, "Fragments a ring holds.", "slots", minimum=1, maximum=4096),
    Parameter(
        "use_message_coalescing",
        "bool",
        False,  # reference openmpi.md 5.5
        "Whether fragments that wait for a work entry or credit go together as one.",
        level=5,
    ),
)

FAILURES: Final = (
    Parameter(
        "failover_enabled",
        "bool",
        True,
        "Informational: failures are told fragment by fragment, as a PML that fails over needs it.",
        level=9,
    ),
    Parameter(
        "port_error_failover",
        "bool",
        True,  # README, row 134
        "Whether a port that goes down fails its connections at once, under a PML that fails over.",
        level=5,
    ),
)


class OpenibComponent(BtlComponent):
    """Reaches every rank over the RDMA adapters of its host."""

    name: ClassVar[str] = "openib"
    version: ClassVar[str] = "0.1.0"
    wire_formats: ClassVar[str] = "ompy_components.btl.openib.wire:WIRE"
    api: ClassVar[tuple[int, int]] = API
    emulated: ClassVar[bool] = True
    exclusive: ClassVar[tuple[tuple[str, str], ...]] = (
        ("if_include", "if_exclude"),
        ("ipaddr_include", "ipaddr_exclude"),
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        reach="network", wire="datagram", ordered=False, checksum=True, heals=True
    )
    pvars: ClassVar[tuple[PerformanceVariable, ...]] = (
        PerformanceVariable("sends", "Work requests for sends.", "work requests"),
        PerformanceVariable("puts", "Work requests for RDMA writes.", "work requests"),
        PerformanceVariable("gets", "Work requests for RDMA reads.", "work requests"),
        PerformanceVariable(
            "eager_rdma", "Fragments written straight into a peer's ring.", "fragments"
        ),
        PerformanceVariable("coalesced", "Fragments sent along with another one.", "fragments"),
        PerformanceVariable("credit_messages", "Messages that tell of credits alone.", "messages"),
        PerformanceVariable(
            "pending", "Fragments that had to wait for credits or room.", "fragments"
        ),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *common_parameters(
            exclusivity=EXCLUSIVITY_DEFAULT,
            eager_limit=EAGER,
            rndv_eager_limit=EAGER,
            max_send_size=LARGEST,
            latency=4,
            bandwidth=0,
            flags=SEND | PUT | GET | RDMA_COMPLETION | FAILOVER_SUPPORT,
            rdma_pipeline_send_length=MIB,
            rdma_pipeline_frag_size=MIB,
            min_rdma_pipeline_size=MIB // 4,
            put_limit=TRANSFER_MAX,
            get_limit=TRANSFER_MAX,
            put_alignment=1,
            get_alignment=1,
        ),
        *PORTS,
        *QUEUES,
        *TRIES,
        *EAGER_RDMA,
        *FAILURES,
    )

    def init(self, context: RankContext) -> list[BtlModule]:
        """One module for each port chosen."""
        if context.size < 2:
            return []  # nobody to reach
        from ompy.frameworks.nic.base import NicError
        from ompy.frameworks.nic.verbs import VerbsNic

        from ompy_components.btl.openib import bring_up, interfaces

        nics = context.find_nics(VerbsNic)
        chosen, unknown = interfaces.choose_devices(context, nics, self.values)
        if unknown and self.values.warn_nonexistent_if:
            text = f"btl_openib: there is no port {', '.join(unknown)}"
            bring_up.warn_once(context, text)
        if not chosen:
            raise NotAvailable("no RDMA adapter is left to use")
        try:
            return list(bring_up.modules(context, self.values, chosen))
        except NicError as problem:
            raise NotAvailable(str(problem)) from problem


COMPONENT = OpenibComponent()
