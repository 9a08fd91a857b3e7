"""Names for annotations: what may stand for a message. As in `ompy.typing`."""

from ompy.typing import (
    Aint,
    Bottom,
    Buffer,
    BufSpec,
    BufSpecB,
    BufSpecV,
    BufSpecW,
    Count,
    Displ,
    InPlace,
    Offset,
    SupportsBuffer,
    SupportsCAI,
    SupportsDLPack,
    TargetSpec,
    TypeSpec,
)

__all__ = [
    "Aint",
    "Bottom",
    "BufSpec",
    "BufSpecB",
    "BufSpecV",
    "BufSpecW",
    "Buffer",
    "Count",
    "Displ",
    "InPlace",
    "Offset",
    "SupportsBuffer",
    "SupportsCAI",
    "SupportsDLPack",
    "TargetSpec",
    "TypeSpec",
]
