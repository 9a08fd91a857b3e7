"""What a module has of its domain: vector, endpoint, contexts and their completion queues.

A scalable endpoint has several transmit contexts behind one address, each with a queue of its own.
A thread owns one of them: it posts there, and reads that queue before all others, so threads do not
wait behind each other's completions. Where there are more threads than contexts, some share one.
Otherwise one endpoint serves as transmit and receive context.

Source: reference ofi.md A3; seed ofi (scalable endpoint).
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from ompy import raw
from ompy.frameworks.nic.fabric import (
    CompletionQueue,
    FabricDomain,
    FabricEndpoint,
    ScalableEndpoint,
)

READ_MAX: Final = 128  # reference ofi.md A1: DEFAULT_MAX_CQE


class Contexts:
    """One address with one or more contexts.

    Attributes:
        first: the context that receives.
        vector: of the peers.
        queues: one of each context, in order.
    """

    def __init__(self, domain: FabricDomain, count: int, *, scalable: bool, receives: int) -> None:
        """Make and enable all of it.

        Args:
            domain: open.
            count: of contexts.
            scalable: as contexts of a scalable endpoint; otherwise there is one.
            receives: buffers that will be posted.

        Raises:
            FabricError: the provider refuses.
        """
        depth = domain.info.tx_size + receives
        with ExitStack() as undo:
            self.vector = domain.address_vector()
            undo.callback(self.vector.close)
            self.queues: list[CompletionQueue] = []
            for index in range(count):
                self.queues.append(domain.completion_queue(depth if not index else 0))
                undo.callback(self.queues[-1].close)
            self._whole: ScalableEndpoint | None = None
            if scalable:
                self._whole = domain.scalable_endpoint(self.vector, count)
                undo.callback(self._whole.close)
                self._whole.enable()
                self._endpoints = [
                    self._whole.context(index, queue) for index, queue in enumerate(self.queues)
                ]
            else:
                self._endpoints = [domain.endpoint(self.vector, self.queues[0])]
            for endpoint in self._endpoints:
                undo.callback(endpoint.close)
                endpoint.enable()
            self._undo = undo.pop_all()  # closes in the order contexts, endpoint, queues, vector
        self.first = self._endpoints[0]
        self._owners: dict[int, int] = {}  # threads, by their numbers; those of ended ones return

    def __len__(self) -> int:
        return len(self._endpoints)

    @property
    def scalable(self) -> bool:
        """Whether they are contexts of a scalable endpoint."""
        return self._whole is not None

    @property
    def name(self) -> bytes:
        """Its address, for peers."""
        return self._whole.name() if self._whole is not None else self.first.name()

    def next(self) -> FabricEndpoint:
        """The context for the next operation of this thread."""
        return self._endpoints[self._own()]

    def in_order(self) -> list[CompletionQueue]:
        """The queues as this thread reads them: its own first."""
        own = self._own()
        return [self.queues[own], *self.queues[:own], *self.queues[own + 1 :]]

    def _own(self) -> int:
        """The number of this thread's context."""
        thread = raw.thread()
        found = self._owners.get(thread)
        if found is None:
            found = self._owners[thread] = len(self._owners) % len(self._endpoints)
        return found

    def arm(self) -> bool | None:
        """As `CompletionQueue.arm`, of all queues."""
        answers = [queue.arm() for queue in self.queues]
        if False in answers:
            return False
        return None if None in answers else True

    def close(self) -> None:
        """Give everything back; what is under way ends badly. Harmless the second time."""
        self._undo.close()
