"""Random parameters that choose among protocols: limits, ways to copy, algorithms, components.

Whatever they are, results are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from ompy_components.coll.tuned.decision import ALGORITHMS

from tests.support.differential.program import some

Settings = dict[str, object]
Range = tuple[float, float]  # the exponents of two that a number is between

# what a parameter may be: numbers in a range, or one of some values
LIMITS: Final[dict[str, Range]] = {
    "eager_limit": (7.4, 17),
    "rndv_eager_limit": (7, 17),
    "max_send_size": (8.1, 18),
    "rdma_pipeline_send_length": (8, 18),
    "rdma_pipeline_frag_size": (10, 20),
    "min_rdma_pipeline_size": (8, 20),
    "put_limit": (10, 20),
    "get_limit": (10, 20),
}
ALIGNMENTS: Final = (1, 2, 4, 8, 64)
FLAGS: Final = {
    "sm": ("send", "send,put", "send,get", "send,put,get,rdma-completion"),
    "tcp": ("send", "send,put", "send,need-ack,need-csum", "send,put,inplace,need-ack,need-csum"),
}
OF_SM: Final[dict[str, Range | Sequence[object]]] = {
    "btl_sm_single_copy_mechanism": ("cma", "emulated", "none"),
    "btl_sm_split_least": (10, 20),
    "btl_sm_inline_max": (6.1, 13),
    "btl_sm_ring_slots": ["4", "16", "64", "1024"],
    "btl_sm_free_list_max": ["1", "2", "4", "16"],
}
OF_TCP: Final[dict[str, Range | Sequence[object]]] = {
    "btl_tcp_links": ["1", "2", "3"],
    "btl_tcp_put_chunk": (8, 20),
    "btl_tcp_unsent_max": (8, 20),
    "btl_tcp_unacknowledged_max": (12, 22),
    "btl_tcp_ack_bytes": (8, 18),
    "btl_tcp_free_list_max": ["-1", "8", "64"],
}
OF_PML: Final[dict[str, Range | Sequence[object]]] = {
    "send_pipeline_depth": ["1", "2", "3", "8"],
    "recv_pipeline_depth": ["1", "2", "4", "8"],
    "max_rdma_per_request": ["1", "2", "4"],
    "max_send_per_range": ["1", "2", "4"],
    "use_all_rdma": ["true", "false"],
    "leave_pinned": ["-1", "0", "1"],
    "message_window": ["1", "2", "8", "64", "65536"],
    "unexpected_bytes": (10, 24),
}
OF_COLLECTIVES: Final[dict[str, Range | Sequence[object]]] = {
    "coll": ["basic,inter", "tuned,basic,inter", "sm,tuned,basic,inter"],
    "osc": ["pt2pt", "rdma,pt2pt", "sm,rdma,pt2pt"],
    "osc_pt2pt_inline_max": (3, 12),
    "osc_rdma_inline_max": (3, 12),
    "coll_sm_fragment_size": ["4096", "8192", "65536"],
    "coll_sm_lend_least": (8, 18),
    "coll_sm_comm_num_segments": ["2", "4", "8"],
    "coll_sm_nonblocking_size": (8, 16),
    "coll_sm_single_copy": ["true", "false"],
    "coll_tuned_bcast_algorithm_segmentsize": (6, 18),
    "coll_basic_alltoall_window": ["1", "2", "16"],
}
SOMETIMES: Final = 0.35  # of the parameters are set; arbitrary


def draw_value(chance: Random, values: Range | Sequence[object]) -> object:
    """A value of a parameter."""
    if isinstance(values, tuple) and isinstance(values[0], int | float):
        low, high = values
        return int(2 ** chance.uniform(low, high))  # type: ignore[arg-type]
    return chance.choice(values)


def draw_some(
    chance: Random, values: dict[str, Range | Sequence[object]], prefix: str = ""
) -> Settings:
    """Some of these parameters."""
    return {
        prefix + name: draw_value(chance, of)
        for name, of in values.items()
        if some(chance, SOMETIMES)
    }


def draw_settings(chance: Random) -> Settings:
    """Parameters of a job on one host."""
    pml, btl = chance.choice(("ob1", "ob1", "bfo")), chance.choice(("sm", "tcp", "sm,tcp"))
    found: Settings = {"pml": pml, "btl": f"self,{btl}"}
    for name in btl.split(","):
        found |= draw_some(chance, dict(LIMITS), f"btl_{name}_")
        if some(chance, SOMETIMES):
            found[f"btl_{name}_flags"] = chance.choice(FLAGS[name])
        for kind in ("put", "get"):
            if some(chance, SOMETIMES):
                found[f"btl_{name}_{kind}_alignment"] = chance.choice(ALIGNMENTS)
        found |= draw_some(chance, OF_SM if name == "sm" else OF_TCP)
    found |= draw_some(chance, OF_PML, f"pml_{pml}_")
    found |= draw_some(chance, OF_COLLECTIVES)
    for operation, words in ALGORITHMS.items():
        if some(chance, SOMETIMES):
            found[f"coll_tuned_{operation}_algorithm"] = chance.choice(list(words))
    return found
