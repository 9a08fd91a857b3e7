"""Variant S: active messages by the NIC's short messages.

An event says from whom there may be messages: none yet, because an earlier one is still missing, or
several. So its peer goes to the work queue, which has it at most once, and its messages are then
taken until there is none. After each one more events are read, so that events are read as fast
as messages, and their queue does not fill. If events were lost all the same everybody is looked at.

Source: seed gasnet (smsg_cq_handle); reference gasnet.md 5.3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ompy.data.errors import ERR_INTERN, ERR_PROC_FAILED, MPIError
from ompy.frameworks.nic.gni import CompletionQueue, Endpoint, EventKind, ReturnCode

from ompy_components.conduit.gni.resources import Resources
from ompy_components.conduit.gni.transport import Transport

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

MESSAGE_SIZE: Final = 640  # reference gasnet.md 5.1: round64(72 + AMMaxMedium)
NOT_PACKED: Final = 8  # reference gasnet.md 5.5: bytes a LONG leaves free
NO_BYTES: Final = memoryview(b"")


class WorkQueue:
    """Peers whose messages are to be looked for, each at most once, in the order they came.

    It has a lock of its own, which is never taken with the NIC's held.
    """

    __slots__ = ("_lock", "_queued", "_work")

    def __init__(self, size: int, lock: AbstractContextManager[object]) -> None:
        """For `size` ranks."""
        self._work: deque[int] = deque()
        self._queued = [False] * size
        self._lock = lock

    def __len__(self) -> int:
        return len(self._work)

    def add_nodes(self, nodes: Iterable[int]) -> None:
        """Look at these too."""
        with self._lock:
            for node in nodes:
                if not self._queued[node]:
                    self._queued[node] = True
                    self._work.append(node)

    def take_node(self) -> int:
        """The one to look at now, or -1."""
        with self._lock:
            if not self._work:
                return -1
            node = self._work.popleft()
            self._queued[node] = False
            return node


class SmsgTransport(Transport):
    """The NIC's short messages, to the peers that have an endpoint."""

    name = "SMSG"
    max_message = MESSAGE_SIZE
    max_packed = MESSAGE_SIZE - NOT_PACKED

    def __init__(
        self,
        resources: Resources,
        queue: CompletionQueue,
        work: WorkQueue,
        burst: int,
        peer_burst: int,
    ) -> None:
        """Take messages that `queue` is told of.

        Args:
            resources: of the rank; its endpoints have their mailboxes.
            queue: of events of messages.
            work: for the peers of those.
            burst: events that are read at a time.
            peer_burst: peers whose messages one poll takes.
        """
        self._resources = resources
        self._queue = queue
        self._work = work
        self._burst = burst
        self._peer_burst = peer_burst

    def _endpoint(self, node: int) -> Endpoint:
        found = self._resources.endpoints[node]
        assert found is not None, "messages to it do not go by the NIC"
        return found

    def send(self, node: int, message: bytearray) -> bool:
        """One short message. It is under way in this call only: the NIC has its bytes then."""
        pool = self._resources.descriptors
        made = pool.take_descriptor() if pool is not None else None
        if made is None and pool is not None:
            return False
        try:
            code = self._endpoint(node).smsg_send(memoryview(message), NO_BYTES)
        finally:
            if pool is not None and made is not None:
                pool.give(made)
        if code is ReturnCode.SUCCESS:
            return True
        if code is ReturnCode.TRANSACTION_ERROR:
            proc = self._resources.context.procs[node]
            raise MPIError(ERR_PROC_FAILED, f"{proc} cannot be reached: {code.value}")
        if code is not ReturnCode.NOT_DONE:
            raise MPIError(ERR_INTERN, f"a short message to rank {node}: {code.value}")
        self._resources.counters["smsg_send_retries"] += 1
        return False

    # -- receiving

    def poll(self) -> int:
        """Read some events, and take the messages of some peers."""
        self._read_events()
        count = 0
        for _ in range(self._peer_burst):
            node = self._work.take_node()
            if node < 0:
                break
            count += self._take_messages(node)
        return count

    def _read_events(self) -> None:
        """Read up to a burst of events, and queue their peers for work."""
        peers = []
        lost = False
        with self._resources.lock:
            for _ in range(self._burst):
                code, event = self._queue.get_event()
                if event is not None:
                    assert event.kind is EventKind.SMSG, "nobody else tells this queue"
                    peers.append(event.peer)
                if code is ReturnCode.ERROR_RESOURCE:
                    lost = True
                    self._drain()
                if event is None or lost:
                    break
        if lost:
            self._resources.counters["message_events_lost"] += 1
            everybody = enumerate(self._resources.endpoints)
            peers = [node for node, endpoint in everybody if endpoint is not None]
        if peers:
            self._work.add_nodes(peers)

    def _drain(self) -> None:
        """Empty the queue of events: whatever they say is looked for anyway."""
        for _ in range(self._queue.depth):  # not more, lest peers that send on keep us here
            code, _ = self._queue.get_event()
            if code is ReturnCode.NOT_DONE:
                return

    def _take_messages(self, node: int) -> int:
        """Deliver what there is of a peer. Returns how many messages."""
        count = 0
        endpoint = self._endpoint(node)
        while True:
            with self._resources.lock:
                code, place = endpoint.smsg_next()
                if place is None:
                    break
                message = bytearray(place)  # the handler's to change
                endpoint.smsg_release()
            self.deliver(node, memoryview(message))
            self._read_events()
            count += 1
        if code is not ReturnCode.NOT_DONE:
            raise MPIError(ERR_INTERN, f"the next short message of rank {node}: {code.value}")
        return count

    def ready(self) -> bool:
        """Whether there are events, or peers to look at."""
        return bool(len(self._work)) or self._queue.ready()

    def close(self) -> None:
        """The queue is given back with the endpoints."""
