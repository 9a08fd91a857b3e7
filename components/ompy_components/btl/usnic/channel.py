"""A channel: a queue pair with its completion queue, send credits and receive buffers.

A module has two. The priority channel is short and has small packets, so that what is on it gets
through fast: ACKs and tiny fragments. All else goes over the data channel.

Source: seed usnic (channels); reference usnic.md 3.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ompy.compiled import Shown, ccall, cclass
from ompy.frameworks.nic.datagram import (
    Completion,
    CompletionQueue,
    Domain,
    QueuePair,
    Registration,
)
from ompy.net.base import Address

PRIORITY: Final = 0  # reference usnic.md 1: channel ids
DATA: Final = 1
FASTSEND_RESERVE: Final = 10  # reference usnic.md 3: credits that may be out for a fast send


@cclass
class ReceiveSegment:
    """A receive buffer that is posted again and again.

    Attributes:
        buffer: registered memory for one packet.
    """

    buffer: memoryview[int]
    __slots__ = tuple(__annotations__)

    def __init__(self, buffer: memoryview) -> None:
        self.buffer = buffer


@cclass
class Channel:
    """One of a module's two.

    Attributes:
        index: `PRIORITY` or `DATA`.
        max_message: bytes of a packet on it at most.
        credits: work entries of the send queue that are free.
        fastsend_threshold: credits there have to be for a fast send.
        address: where peers send to.
        inline_max: bytes that can be sent inline.
        sends: packets posted so far.
    """

    _pair: Shown[QueuePair]
    _queue: Shown[CompletionQueue]
    _registration: Shown[Registration]
    _used: deque[ReceiveSegment]
    address: Address
    credits: int
    fastsend_threshold: int
    index: int
    inline_max: int
    max_message: int
    sends: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        domain: Domain,
        index: int,
        send_depth: int,
        receive_depth: int,
        max_message: int,
        *,
        completions: int = -1,
        port: int = 0,
    ) -> None:
        """Make it, and post all its receive buffers.

        Args:
            domain: of the device.
            index: `PRIORITY` or `DATA`.
            send_depth: entries of the send queue.
            receive_depth: receive buffers.
            max_message: bytes of a packet at most.
            completions: entries of the completion queue; -1: as many as both queues have.
            port: that peers send to; 0 for any.
        """
        self.index = index
        self.max_message = max_message
        self.credits = send_depth
        self.fastsend_threshold = max(1, send_depth - FASTSEND_RESERVE)
        self.sends = 0
        needed = send_depth + receive_depth
        self._queue = domain.completion_queue(needed if completions < 0 else completions)
        self._pair = domain.queue_pair(
            self._queue, send_depth, receive_depth, max_message, port=port
        )
        self.address = self._pair.address
        self.inline_max = self._pair.inline_max
        memory = memoryview(bytearray(receive_depth * max_message))
        self._registration = domain.register(memory)
        self._used = deque()
        for start in range(0, len(memory), max_message):
            segment = ReceiveSegment(memory[start : start + max_message])
            self._pair.post_receive(segment.buffer, segment)

    @ccall
    def post(self, packet: memoryview, to: Address, context: object, inline: bool) -> None:
        """Send a packet; the doorbell is for `ring`, unless it is inline. Takes a credit."""
        self.credits -= 1
        self.sends += 1
        self._pair.post_send(packet, to, context, inline=inline, more=not inline)

    @ccall
    def ring(self) -> None:
        """Let the device take what was posted."""
        self._pair.ring()

    @ccall
    def read_completions(self, most: int) -> list[Completion]:
        """What is done. Of a send, the credit is for the caller to give back."""
        return self._queue.read(most)

    @ccall
    def ready(self) -> bool:
        """Whether `read_completions` would find something."""
        return self._queue.ready()

    @ccall
    def used(self, segment: ReceiveSegment) -> None:
        """A buffer has been read and can be posted again."""
        self._used.append(segment)

    @property
    def held(self) -> int:
        """Buffers that have been read and not posted again."""
        return len(self._used)

    @ccall
    def dropped(self) -> int:
        """Packets that found no buffer, as far as the device knows."""
        return self._pair.dropped

    @ccall
    def repost(self) -> int:
        """Post the buffers that have been read; returns how many."""
        count: int = len(self._used)
        while self._used:
            segment: ReceiveSegment = self._used.popleft()
            self._pair.post_receive(segment.buffer, segment)
        return count

    def close(self) -> None:
        """Give everything back."""
        self._pair.close()
        self._queue.close()
        self._registration.close()
