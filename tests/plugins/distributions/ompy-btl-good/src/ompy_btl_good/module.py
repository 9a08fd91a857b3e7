"""Frames over TCP within a host: out over connections a rank opens, in over those it accepts.

Who connects says his rank and proves the job's key before anything else is read.
"""

from __future__ import annotations

import hmac
import struct
from collections import deque

from ompy.frameworks.btl import (
    ERROR_FATAL,
    QUEUED,
    SEND,
    UNREACHABLE,
    BtlModule,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values
from ompy.net.base import WOULD_BLOCK, Address, LinkError, Stream

KEY = "btl.good"
FRAME = struct.Struct("<IB")  # bytes of the fragment, tag
HELLO = struct.Struct("<I32s")  # rank, proof
ROOM = 65536


def proof(context: RankContext, rank: int) -> bytes:
    return hmac.digest(context.job_key, b"good" + context.job_id + rank.to_bytes(4), "sha256")


class GoodEndpoint(Endpoint):
    """A peer, and the connection to it."""

    def __init__(self, module: GoodModule, proc: Proc) -> None:
        super().__init__(module, proc)
        self.owner = module
        self.stream: Stream | None = None
        self.ended = False
        self.queue: deque[tuple[memoryview, Descriptor | None]] = deque()

    def put(self, piece: bytes, descriptor: Descriptor | None) -> bool:
        """Queue a piece, which goes when the connection takes it; false if that has ended."""
        if self.ended:
            return False
        if self.stream is None:
            self.stream = self.open()
        self.queue.append((memoryview(piece), descriptor))
        self.owner.readiness.want_write(self.stream, wanted=True)
        return True

    def open(self) -> Stream:
        context = self.owner.context
        host, _, port = context.modex(self.proc)[KEY].decode().rpartition(":")
        stream = context.network.connect(Address(host, int(port)))
        self.owner.readiness.add(stream, self)
        hello = HELLO.pack(context.rank, proof(context, context.rank))
        self.queue.append((memoryview(hello), None))
        return stream

    def ready(self, *, readable: bool) -> int:
        """The connection takes something, or has ended: the peer never writes to it."""
        assert self.stream is not None
        done = 0
        try:
            if readable and self.stream.receive_into(memoryview(bytearray(1))) != WOULD_BLOCK:
                raise LinkError("the peer has closed the connection")
            while self.queue:
                piece, descriptor = self.queue[0]
                taken = self.stream.send([piece])
                if taken < len(piece):
                    self.queue[0] = (piece[taken:], descriptor)
                    if taken == 0:
                        break
                    continue
                self.queue.popleft()
                self.complete(descriptor, 0)
                done += 1
        except LinkError as problem:
            self.fail(str(problem))
            self.owner.readiness.remove(self.stream)
            return 1
        self.owner.readiness.want_write(self.stream, wanted=bool(self.queue))
        return done

    def complete(self, descriptor: Descriptor | None, status: int) -> None:
        if descriptor is not None and descriptor.callback is not None:
            descriptor.callback.completed(self.owner, self, descriptor, status)

    def fail(self, why: str) -> None:
        """The path is gone: say so if anything was to go over it, and give that back.

        A peer that has finalized closes, too, and what it sent last may not have been read yet.
        """
        self.ended = True
        callback = self.owner.error_callback
        if self.queue and callback is not None and not self.proc.departed:
            callback.failed(self.owner, ERROR_FATAL, self.proc, why)
        waiting, self.queue = self.queue, deque()
        for _, descriptor in waiting:
            self.complete(descriptor, UNREACHABLE)


class Visitor:
    """A connection a peer opened, with what came over it."""

    def __init__(self, owner: GoodModule, stream: Stream) -> None:
        self.owner = owner
        self.stream = stream
        self.peer: GoodEndpoint | None = None
        self.data = bytearray()

    def ready(self, *, readable: bool) -> int:
        room = bytearray(ROOM)
        try:
            count = self.stream.receive_into(memoryview(room))
        except LinkError:
            count = 0
        if count == WOULD_BLOCK:
            return 0
        self.data += room[:count]
        if count == 0 or not self.introduce():
            self.owner.forget(self)
            return 1
        return self.deliver()

    def introduce(self) -> bool:
        """Find out who it is; false if it is nobody of this job."""
        if self.peer is None and len(self.data) >= HELLO.size:
            context = self.owner.context
            rank, given = HELLO.unpack_from(self.data)
            if not hmac.compare_digest(given, proof(context, rank)) or rank >= context.size:
                return False
            self.peer = self.owner.endpoint(context.procs[rank])
            del self.data[: HELLO.size]
        return True

    def deliver(self) -> int:
        count = 0
        while self.peer is not None and len(self.data) >= FRAME.size:
            size, tag = FRAME.unpack_from(self.data)
            end = FRAME.size + size
            if len(self.data) < end:
                break
            fragment = bytes(self.data[FRAME.size : end])
            del self.data[:end]
            self.owner.dispatch(self.peer, tag, memoryview(fragment))
            count += 1
        return count


class GoodModule(BtlModule):
    """The way to the other ranks of this host."""

    def __init__(self, context: RankContext, values: Values) -> None:
        super().__init__("good", context, values)
        self.flags = SEND
        self.endpoints: dict[int, GoodEndpoint] = {}
        self.visitors: list[Visitor] = []
        interfaces = context.network.interfaces()
        interfaces.sort(key=lambda interface: not interface.loopback)  # the virtual world has none
        self.listener = context.network.listen(interfaces[0].address)
        self.readiness = context.network.readiness()
        self.readiness.add(self.listener, self)
        address = self.listener.address
        context.wireup.publish(KEY, f"{address.host}:{address.port}".encode())

    def endpoint(self, proc: Proc) -> GoodEndpoint:
        if proc.rank not in self.endpoints:
            self.endpoints[proc.rank] = GoodEndpoint(self, proc)
        return self.endpoints[proc.rank]

    def reach(self, proc: Proc) -> Endpoint | None:
        return self.endpoint(proc) if proc.node == self.context.me.node else None

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        assert isinstance(endpoint, GoodEndpoint)
        descriptor.tag = tag
        frame = FRAME.pack(len(descriptor.segment), tag) + bytes(descriptor.segment)
        return QUEUED if endpoint.put(frame, descriptor) else UNREACHABLE

    def poll(self) -> int:
        return sum(ready.owner.ready(readable=ready.readable) for ready in self.readiness.poll())

    def arm(self) -> bool:
        return not self.readiness.poll()

    def ready(self, *, readable: bool) -> int:
        """Somebody connects."""
        stream = self.listener.accept()
        if stream is None:
            return 0
        visitor = Visitor(self, stream)
        self.visitors.append(visitor)
        self.readiness.add(stream, visitor)
        return 1

    def forget(self, visitor: Visitor) -> None:
        self.visitors.remove(visitor)
        self.readiness.remove(visitor.stream)
        visitor.stream.close()

    def finalize(self) -> None:
        endpoints = self.endpoints.values()
        self.context.engine.wait_until(lambda: not any(endpoint.queue for endpoint in endpoints))
        for endpoint in endpoints:
            if endpoint.stream is not None:
                self.readiness.remove(endpoint.stream)
                endpoint.stream.close()
        for visitor in list(self.visitors):
            self.forget(visitor)
        self.readiness.remove(self.listener)
        self.listener.close()
        self.readiness.close()
