"""Parameters that all components have whose operations are messages."""

from __future__ import annotations

from typing import Final

from ompy.mca.parameter import Parameter

INLINE_MAX: Final = Parameter(
    "inline_max",
    "size_t",
    # arbitrary: with its command less than the least eager limit of a BTL, sm's 4 KiB, so
    # that a second message, and a copy less, pay only beyond
    3584,
    "Bytes of data that are sent along with what is to be done with them, where that is done by "
    "messages. More follow in a message of their own.",
    level=5,
    unit="bytes",
    minimum=0,
)
