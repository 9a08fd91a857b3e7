"""A conduit between the ranks of one virtual world, for tests of what stands above.

It keeps the contract and nothing more: whatever that leaves open is decided by the seed, to the
disadvantage of who relies on it. Messages and bytes take any time and overtake each other; a put
that is bulk and a long message that is asynchronous read the source as late as they may; a payload
is gone when its handler returns; credits, transfers under way and sizes are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ompy.engine.virtual_engine import VirtualEngine
from ompy.frameworks.conduit import (
    Category,
    Conduit,
    Handler,
    SegmentInfo,
    ThreadMode,
    Token,
    Transfer,
)
from ompy.frameworks.context import RankContext

LONGEST = 2_000  # ns that anything takes at most
LONGS = (Category.LONG, Category.LONG_ASYNC)


@dataclass
class Limits:
    """What is scarce."""

    depth: int = 3
    transfers: int = 4
    max_medium: int = 512
    max_long: int = 4096
    max_put_local: int = 256
    max_segment: int = 1 << 20


@dataclass
class World:
    """All ranks' conduits.

    Attributes:
        limits: of all.
        conduits: by rank.
        code: the job ends with it; None while it goes on.
        leaving: who has called `exit` or heard of it.
    """

    limits: Limits = field(default_factory=Limits)
    conduits: dict[int, LoopbackConduit] = field(default_factory=dict)
    attached: int = 0
    code: int | None = None
    leaving: set[int] = field(default_factory=set)


class LoopbackConduit(Conduit):
    """One rank's."""

    def __init__(self, world: World, context: RankContext, mode: ThreadMode) -> None:
        super().__init__("loopback", context, mode)
        limits = world.limits
        self.max_medium = limits.max_medium
        self.max_long_request = self.max_long_reply = limits.max_long
        self.max_put_local = limits.max_put_local
        self._world = world
        self._rank = context.rank
        assert isinstance(context.engine, VirtualEngine)
        self._engine: VirtualEngine = context.engine
        self._handlers: Sequence[Handler | None] = ()
        self._inbox: list[Callable[[], Any]] = []
        self._credits = [limits.depth] * context.size
        self._under_way = 0
        self._running = 0
        self.counts = dict.fromkeys(("requests", "replies", "puts", "gets", "stalls", "hidden"), 0)
        world.conduits[context.rank] = self
        context.engine.add_poller(self)

    # --- life

    def max_segment(self) -> tuple[int, int]:
        return self._world.limits.max_segment, self._world.limits.max_segment

    def attach(self, handlers: Sequence[Handler | None], size: int) -> None:
        world, ranks = self._world, self.context.size
        self._handlers = handlers
        self.segment = memoryview(bytearray(size))
        self.mapped = [None] * ranks
        self.mapped[self._rank] = self.segment
        world.attached += 1
        self.tell_all()
        while world.attached < ranks:
            self._engine.pause("the others to attach")
        self.segments = [
            SegmentInfo(0x10_0000 * (rank + 1), len(world.conduits[rank].segment))
            for rank in range(ranks)
        ]

    def exit(self, code: int) -> int:
        """The largest code counts. Who has not called this hears of it in its next poll."""
        world = self._world
        world.code = max(code, world.code or 0)
        world.leaving.add(self._rank)
        self.tell_all()
        self._engine.wait_until(lambda: len(world.leaving) == self.context.size)
        self._engine.remove_poller(self)
        return world.code

    def tell_all(self) -> None:
        for conduit in self._world.conduits.values():
            conduit._engine.wake()

    # --- messages

    def request(
        self,
        category: Category,
        node: int,
        handler: int,
        arguments: Sequence[int],
        payload: memoryview,
        offset: int,
    ) -> None:
        assert node != self._rank, "nothing is for the own rank"
        assert not self._running, "a request from within a handler"
        self._check(category, node, arguments, payload, offset, request=True)
        while not self._credits[node]:
            self._stall()
        self._credits[node] -= 1
        self.counts["requests"] += 1
        self._send(
            Token(self._rank, is_request=True), category, node, handler, arguments, payload, offset
        )

    def reply(
        self,
        category: Category,
        token: Token,
        handler: int,
        arguments: Sequence[int],
        payload: memoryview,
        offset: int,
    ) -> None:
        assert self._running, "a reply from outside a handler"
        assert token.is_request
        assert not token.replied
        assert category is not Category.LONG_ASYNC
        self._check(category, token.source, arguments, payload, offset, request=False)
        token.replied = True
        self.counts["replies"] += 1
        answer = Token(self._rank, is_request=False)
        self._send(answer, category, token.source, handler, arguments, payload, offset)

    def _check(
        self,
        category: Category,
        node: int,
        arguments: Sequence[int],
        payload: memoryview,
        offset: int,
        *,
        request: bool,
    ) -> None:
        assert all(-(1 << 31) <= word < 1 << 31 for word in arguments)
        assert len(arguments) <= 16
        assert payload.format == "B"
        assert payload.ndim == 1
        limit = {Category.SHORT: 0, Category.MEDIUM: self.max_medium}
        long = self.max_long_request if request else self.max_long_reply
        assert len(payload) <= limit.get(category, long)
        if category in LONGS:
            assert 0 <= offset <= offset + len(payload) <= self.segments[node].size

    def _send(
        self,
        token: Token,
        category: Category,
        node: int,
        handler: int,
        arguments: Sequence[int],
        payload: memoryview,
        offset: int,
    ) -> None:
        peer = self._world.conduits[node]
        late = category is Category.LONG_ASYNC
        data = payload if late else memoryview(bytes(payload))
        words = list(arguments)

        def arrive() -> None:
            if category in LONGS:
                peer.segment[offset : offset + len(data)] = data
            deliver = partial(peer._handle, self, token, category, handler, words, data, offset)
            peer._arrive(deliver)

        self._after(arrive)

    def _handle(
        self,
        sender: LoopbackConduit,
        token: Token,
        category: Category,
        index: int,
        words: list[int],
        data: memoryview,
        offset: int,
    ) -> None:
        payload = memoryview(bytearray(data))
        if category in LONGS:
            payload = self.segment[offset : offset + len(data)]
        function = self._handlers[index]
        assert function is not None
        self._running += 1
        try:
            function(token, payload, words)
        finally:
            self._running -= 1
            if category is Category.MEDIUM:
                payload.release()
            if not token.is_request:
                self._credit(sender._rank)
            elif not token.replied:
                self.counts["hidden"] += 1
                self._after(lambda: sender._arrive(partial(sender._credit, self._rank)))

    def _credit(self, node: int) -> None:
        self._credits[node] += 1
        assert self._credits[node] <= self._world.limits.depth

    # --- transfers

    def put(
        self, node: int, offset: int, local: memoryview, transfer: Transfer, *, bulk: bool
    ) -> None:
        assert bulk or len(local) <= self.max_put_local
        source = local if bulk else memoryview(bytes(local))
        self._begin(node, offset, len(local), "puts")
        memory = self._world.conduits[node].segment

        def move() -> None:
            memory[offset : offset + len(source)] = source
            self._after(lambda: self._arrive(partial(self._done, transfer, is_get=False)))

        self._after(move)

    def get(self, node: int, offset: int, local: memoryview, transfer: Transfer) -> None:
        self._begin(node, offset, len(local), "gets")
        memory = self._world.conduits[node].segment

        def read() -> None:
            data = bytes(memory[offset : offset + len(local)])
            self._after(lambda: self._arrive(partial(self._got, local, data, transfer)))

        self._after(read)

    def _begin(self, node: int, offset: int, size: int, kind: str) -> None:
        assert node != self._rank, "nothing is for the own rank"
        assert not self._running, "a transfer from within a handler"
        assert 0 <= offset < offset + size <= self.segments[node].size
        while self._under_way >= self._world.limits.transfers:
            self._stall()
        self._under_way += 1
        self.counts[kind] += 1

    def _got(self, local: memoryview, data: bytes, transfer: Transfer) -> None:
        local[:] = data
        self._done(transfer, is_get=True)

    def _done(self, transfer: Transfer, *, is_get: bool) -> None:
        self._under_way -= 1
        transfer.done(is_get=is_get)

    # --- time

    def _after(self, call: Callable[[], Any]) -> None:
        scheduler = self._engine.scheduler
        scheduler.after(scheduler.random.randrange(1, LONGEST), call)

    def _arrive(self, call: Callable[[], Any]) -> None:
        """Something for this rank's next poll; which one comes first is anybody's guess."""
        place = self._engine.scheduler.random.randint(0, len(self._inbox))
        self._inbox.insert(place, call)
        self._engine.wake()

    def _stall(self) -> None:
        self.counts["stalls"] += 1
        before = self._state()
        self._engine.wait_until(lambda: self._state() != before)

    def _state(self) -> tuple[Any, ...]:
        return (*self._credits, self._under_way)

    def poll(self) -> int:
        self._end_if_asked()
        handled = 0
        while self._inbox and handled < 3:
            self._inbox.pop()()
            handled += 1
        return handled

    def _end_if_asked(self) -> None:
        world = self._world
        if world.code is not None and self._rank not in world.leaving:
            world.leaving.add(self._rank)
            self.tell_all()
            self._engine.remove_poller(self)
            self.on_exit(world.code)

    def arm(self) -> bool:
        asked = self._world.code is not None and self._rank not in self._world.leaving
        return not self._inbox and not asked

    def neighbours(self) -> Sequence[int]:
        return range(self.context.size)

    def counters(self) -> dict[str, int]:
        return dict(self.counts)


def factory(**limits: int) -> Callable[[RankContext, ThreadMode], LoopbackConduit]:
    """Makes the conduits of one world."""
    world = World(Limits(**limits))
    return partial(LoopbackConduit, world)
