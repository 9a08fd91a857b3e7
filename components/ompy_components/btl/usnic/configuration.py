"""What the parameters say about a module: its channels, how it sends, its protocol's numbers."""

from __future__ import annotations

from typing import Final

from ompy.frameworks.btl import FAILOVER_SUPPORT
from ompy.frameworks.nic.datagram import DatagramNic
from ompy.mca.parameter import Values

from ompy_components.btl.usnic.channel import DATA, PRIORITY, Channel
from ompy_components.btl.usnic.packets import CHUNK_PAYLOAD, FRAG_PAYLOAD
from ompy_components.btl.usnic.reliability.congestion_window import LEAST
from ompy_components.btl.usnic.reliability.limits import US, Limits
from ompy_components.btl.usnic.send_engine import Options

PRIORITY_DEPTH: Final = 127  # reference usnic.md 3: max(128, 32 * MCW_SIZE) - 1
FIRST_BYTES: Final = 1 << 17  # arbitrary: about half of what a socket of Linux holds by default


def options(values: Values, channels: tuple[Channel, Channel], flags: int) -> Options:
    """How the module sends."""
    priority, data = channels
    max_frag = data.max_message - FRAG_PAYLOAD
    return Options(
        max_tiny=min(priority.max_message - FRAG_PAYLOAD, max_frag),
        max_frag=max_frag,
        max_chunk=data.max_message - CHUNK_PAYLOAD,
        lazy_from=values.pack_lazy_threshold,
        resends_max=values.max_resends_per_iteration,
        data_only=values.all_data_on_data_channel,
        ack_rounds=values.ack_iteration_delay,
        wait_for_ack=bool(flags & FAILOVER_SUPPORT),
    )


def channels(nic: DatagramNic, values: Values, local_rank: int) -> tuple[Channel, Channel]:
    """The priority channel and the data channel (reference usnic.md 3)."""
    domain, port = nic.domain(), 0
    if values.base_udp_port:
        port = values.base_udp_port + 2 * local_rank

    def depth(given: int, standard: int) -> int:
        return min(standard if given < 0 else given, nic.depth_max)

    tiny = min(values.priority_limit or 768, nic.max_message)  # reference usnic.md 17: 0 is 768
    priority = Channel(
        domain,
        PRIORITY,
        depth(values.prio_sd_num, PRIORITY_DEPTH),
        depth(values.prio_rd_num, PRIORITY_DEPTH),
        tiny,
        completions=values.cq_num,
        port=port,
    )
    data = Channel(
        domain,
        DATA,
        depth(values.sd_num, nic.depth_max),
        depth(values.rd_num, nic.depth_max),
        nic.max_message,
        completions=values.cq_num,
        port=port + 1 if port else 0,
    )
    return priority, data


def reliability_limits(values: Values, packet_size: int) -> Limits:
    """Numbers of the reliability machine."""
    timeout = values.retrans_timeout * US
    return Limits(
        initial_window=max(LEAST, FIRST_BYTES // packet_size),
        retrans_timeout=timeout,
        retrans_timeout_max=max(timeout, values.retrans_timeout_max * US),
        retries_max=values.retries_max,
        ack_delay=min(values.ack_delay * US, timeout // 2),
        congestion_control=values.congestion_control,
        selective=values.selective_ack,
        chance_loss=values.chance_loss / 100,
    )
