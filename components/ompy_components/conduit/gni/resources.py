"""What the parts of one rank's conduit share.

The NIC's calls are made with `lock` held, and none of them from within another. Where something
has run out, whoever needs it tries again after its own polling, and calls `yield_` when that found
nothing:

    while not free:
        if not self.poll_local():
            resources.yield_()

Source: seed gasnet (Initialization, Locking).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.gni import (
    CommunicationDomain,
    CompletionQueue,
    Endpoint,
    GniNic,
    MemoryHandle,
)
from ompy.mca.parameter import Values

from ompy_components.conduit.gni.parameters import ordering
from ompy_components.conduit.gni.tracing import Tracing

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ompy.frameworks.conduit import SegmentInfo

    from ompy_components.conduit.gni.rdma.descriptors import DescriptorPool


class Resources:
    """What the parts of one rank's conduit share.

    Attributes:
        context: the rank.
        nic: its NIC, open.
        domain: the job's communication domain on it.
        local_queue: events of what this rank has posted. `RdmaEngine.poll_local` reads it; of posts
            that are not its own it calls the `context` with the event.
        message_queue: events of short messages that arrive.
        endpoints: by rank; None for the own one.
        parameters: of the component.
        ordering: that memory is registered with, as they say.
        lock: held around calls of the NIC, which stand no other meanwhile. Costs nothing where
            there is one caller at a time.
        yield_: lets time go by where something has to be waited for: other pollers of the rank
            come to their turn, no handler of a message does. It may be called in a handler.
        counters: of stalls, retries, messages, by name.
        descriptors: what each message and each post by the NIC takes one of while it is under way;
            None before `attach`, when there are no messages but those of an exit.
        segments: of all ranks, by rank; after `attach`, as all that follows.
        handles: of all ranks' segments, by rank.
        segment, segment_handle: the own one.
        tracing: what tells the rank's trace.
        auxiliary, auxiliary_handle: registered memory for bounce buffers and the buffers of post
            descriptors, in one piece, because registrations are few.
    """

    __slots__ = (
        "auxiliary",
        "auxiliary_handle",
        "context",
        "counters",
        "descriptors",
        "domain",
        "endpoints",
        "handles",
        "local_queue",
        "lock",
        "message_queue",
        "nic",
        "ordering",
        "parameters",
        "segment",
        "segment_handle",
        "segments",
        "tracing",
        "yield_",
    )

    def __init__(
        self,
        context: RankContext,
        nic: GniNic,
        domain: CommunicationDomain,
        parameters: Values,
        lock: AbstractContextManager[object],
        yield_: Callable[[], None],
        layer: str,
    ) -> None:
        self.context = context
        self.nic = nic
        self.domain = domain
        self.parameters = parameters
        self.ordering = ordering(parameters)
        self.lock = lock
        self.yield_ = yield_
        self.counters: Counter[str] = Counter()
        self.tracing = Tracing(context.trace, layer, context.size)
        self.descriptors: DescriptorPool | None = None
        self.local_queue: CompletionQueue
        self.message_queue: CompletionQueue
        self.endpoints: list[Endpoint | None] = [None] * context.size
        self.segments: list[SegmentInfo] = []
        self.handles: list[MemoryHandle | None] = [None] * context.size
        self.segment = memoryview(b"")
        self.segment_handle: MemoryHandle | None = None
        self.auxiliary = memoryview(b"")
        self.auxiliary_handle: MemoryHandle | None = None
