"""What is done when a post is complete, as bits of its descriptor.

Source: seed gasnet (bound_cq_handle); reference gasnet.md 6.1 has the numbers.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final


class PostFlag(IntFlag):
    """One thing to do. Bits of reference gasnet.md 6.1, release 1.20.2."""

    COPY = 8  # what was got, from a buffer to where it is wanted
    SEND = 16  # the message that waited for the put
    UNBOUNCE = 32  # give a bounce buffer back
    UNREGISTER = 64  # give a temporary registration back
    COMPLETION_FLAG = 128  # tell a thread that waits
    COMPLETION_OP = 256  # tell the operation this is part of


# In this order; before the last three the descriptor is free again. The seed claims none, and the
# releases differ (reference gasnet.md 6.2): here whoever is told finds everything given back.
ORDER: Final = (
    PostFlag.COPY,
    PostFlag.UNREGISTER,
    PostFlag.UNBOUNCE,
    PostFlag.COMPLETION_FLAG,
    PostFlag.COMPLETION_OP,
    PostFlag.SEND,
)
EXCLUSIVE: Final = (  # reference gasnet.md 6.1
    (PostFlag.SEND, PostFlag.COPY),
    (PostFlag.UNBOUNCE, PostFlag.UNREGISTER),
    (PostFlag.COMPLETION_FLAG, PostFlag.COMPLETION_OP),
)
assert set(ORDER) == set(PostFlag)
# plain numbers for those who test them at every post
GC_POST_COPY: Final = int(PostFlag.COPY)
GC_POST_SEND: Final = int(PostFlag.SEND)
GC_POST_UNBOUNCE: Final = int(PostFlag.UNBOUNCE)
GC_POST_UNREGISTER: Final = int(PostFlag.UNREGISTER)
GC_POST_COMPLETION_FLAG: Final = int(PostFlag.COMPLETION_FLAG)
GC_POST_COMPLETION_OP: Final = int(PostFlag.COMPLETION_OP)
