"""The limits and weights of a BTL that users may change: what `btl_parameters` declares.

Source: reference openmpi.md 3.12.
"""

from __future__ import annotations

from typing import Final

# type, level and unit of parameters
_SIZE: Final = ("size_t", 4, "bytes")
_ALIGNMENT: Final = ("size_t", 6, "bytes")

# name; type, level and unit; least value; help
COMMON: Final = (
    (
        "exclusivity",
        ("int", 7, "points"),
        0,
        "Only the BTLs with the highest exclusivity that reach a peer are used for it.",
    ),
    (
        "eager_limit",
        _SIZE,
        128,
        "Largest fragment sent without asking the receiver first, header included.",
    ),
    (
        "rndv_eager_limit",
        _SIZE,
        0,
        "Bytes of a large message that travel with its first fragment.",
    ),
    ("max_send_size", _SIZE, 256, "Largest fragment, header included."),
    (
        "latency",
        ("int", 5, "us"),
        0,
        "Latency the BTL is taken to have; the fastest ones carry small messages.",
    ),
    (
        "bandwidth",
        ("int", 5, "Mbit/s"),
        0,
        "Bandwidth the BTL is taken to have; large messages are shared out by it.",
    ),
    (
        "rdma_pipeline_send_length",
        _SIZE,
        0,
        "Bytes at the end of a large message that are sent while its puts are set up.",
    ),
    ("rdma_pipeline_frag_size", _SIZE, 1, "Bytes of a large message that one put moves at most."),
    (
        "min_rdma_pipeline_size",
        _SIZE,
        0,
        "Messages up to this size are put whole; at least eager_limit and "
        "rdma_pipeline_send_length together.",
    ),
    ("put_limit", _SIZE, 1, "Bytes one put moves at most."),
    ("get_limit", _SIZE, 1, "Bytes one get moves at most."),
    ("put_alignment", _ALIGNMENT, 1, "What addresses and sizes of puts are multiples of."),
    ("get_alignment", _ALIGNMENT, 1, "What addresses and sizes of gets are multiples of."),
)
