"""The parameters that every BTL has: a component's `parameters` begin with `common_parameters`.

Source: reference openmpi.md 3.11 and 3.12.
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.btl import (
    ATOMIC_FOPS,
    ATOMIC_OPS,
    FAILOVER_SUPPORT,
    GET,
    HETEROGENEOUS_RDMA,
    NEED_ACK,
    NEED_CSUM,
    PUT,
    RDMA_COMPLETION,
    RDMA_FLUSH,
    SEND,
    SEND_INPLACE,
    SIGNALED,
    SINGLE_ADD_PROCS,
)
from ompy.frameworks.btl_base.btl_limits import COMMON
from ompy.mca.enumerators import FlagEnumerator
from ompy.mca.parameter import Parameter

FLAG_WORDS: Final = FlagEnumerator(
    {
        "send": SEND,
        "put": PUT,
        "get": GET,
        "inplace": SEND_INPLACE,
        "need-ack": NEED_ACK,
        "need-csum": NEED_CSUM,
        "rdma-completion": RDMA_COMPLETION,
        "hetero-rdma": HETEROGENEOUS_RDMA,
        "failover": FAILOVER_SUPPORT,
        "signaled": SIGNALED,
        "atomics": ATOMIC_OPS,
        "fetching-atomics": ATOMIC_FOPS,
        "static": SINGLE_ADD_PROCS,
        "rdma-flush": RDMA_FLUSH,
    }
)  # reference openmpi.md 3.11


def common_parameters(
    *,
    exclusivity: int,
    eager_limit: int,
    rndv_eager_limit: int | None = None,
    max_send_size: int | None = None,
    latency: int = 100,
    bandwidth: int = 100,
    flags: int | None = None,
    **rdma: int,
) -> tuple[Parameter, ...]:
    """The parameters every BTL has (reference openmpi.md 3.12), with this BTL's defaults.

    Args:
        exclusivity: default of the parameter of that name, as the next five.
        eager_limit: in bytes.
        rndv_eager_limit: in bytes; the eager limit if it is not given.
        max_send_size: as well.
        latency: in us; tcp's if it is not given.
        bandwidth: in Mbit/s; as well.
        flags: what it does by default; without it there is no parameter `flags`.
        rdma: for a BTL with put or get: defaults of `rdma_pipeline_send_length`,
            `rdma_pipeline_frag_size`, `min_rdma_pipeline_size`, `put_limit`, `get_limit`,
            `put_alignment` and `get_alignment`, those that it has.
    """
    defaults = {
        "exclusivity": exclusivity,
        "eager_limit": eager_limit,
        "rndv_eager_limit": eager_limit if rndv_eager_limit is None else rndv_eager_limit,
        "max_send_size": eager_limit if max_send_size is None else max_send_size,
        "latency": latency,
        "bandwidth": bandwidth,
        **rdma,
    }
    made = [
        Parameter(name, kind, defaults.pop(name), text, level=level, unit=unit, minimum=least)
        for name, (kind, level, unit), least, text in COMMON
        if name in defaults
    ]
    assert not defaults, f"no parameters of every BTL: {sorted(defaults)}"
    if flags is not None:
        text = "What it is used for; what it cannot do is left out."
        kind = "unsigned_int"
        made.append(
            Parameter("flags", kind, flags, text, level=5, unit="flags", enumerator=FLAG_WORDS)
        )
    return tuple(made)
