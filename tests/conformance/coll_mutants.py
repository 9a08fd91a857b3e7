"""Planted defects in coll/basic, and the test of the kit that has to notice each."""

from __future__ import annotations

from ompy.data.message import Blocks, Message
from ompy.engine.base import Poller
from ompy.frameworks.coll import CollModule
from ompy_components.coll.basic.component import BasicComponent
from ompy_components.coll.basic.module import Basic


class BarrierLetsGo(Basic):
    """A barrier that waits for the left neighbour only."""

    def schedule_barrier(self, exchange):
        exchange.receive(memoryview(bytearray(0)), (exchange.rank - 1) % exchange.size)
        exchange.send(memoryview(b""), (exchange.rank + 1) % exchange.size)
        yield


class BcastFromRank0(Basic):
    """The root is always rank 0."""

    def schedule_bcast(self, exchange, message, root):
        return super().schedule_bcast(exchange, message, 0)


class IgnoresInPlace(Basic):
    """In place, the own block is not among what is sent."""

    def schedule_allgather(self, exchange, send, receive):
        if send is None:
            own = receive[exchange.rank]
            send = Message(
                memoryview(bytearray(len(own.memory))), own.origin, own.count, own.layout
            )
        return super().schedule_allgather(exchange, send, receive)


class IgnoresGaps(Basic):
    """Blocks are taken to be in one piece."""

    def schedule_alltoall(self, exchange, send, receive):
        rank, size = exchange.rank, exchange.size
        source = receive if send is None else send
        kept = [
            bytes(source[other].memory)[source[other].origin :][: source[other].size]
            for other in range(size)
        ]
        for other in range(size):
            block = receive[other]
            if other == rank:
                block.store(kept[rank])
                continue
            exchange.receive(block.memory[block.origin : block.origin + block.size], other)
            exchange.send(memoryview(kept[other]), other)
        yield


class WritesBehind(Basic):
    """Scatter stores a byte too many where there is room."""

    def schedule_scatter(self, exchange, send, receive, root):
        yield from super().schedule_scatter(exchange, send, receive, root)
        if receive is not None and receive.count:
            end = receive.origin + receive.count * receive.layout.extent
            if end < len(receive.memory):
                receive.memory[end] ^= 0xFF


class TakesAnyOrder(Basic):
    """Operands are combined from the last rank to the first."""

    def schedule_reduce(self, exchange, send, receive, operation, root):
        own = send if send is not None else receive
        parts = Blocks.even(
            memoryview(bytearray(own.size * exchange.size)), 0, own.count, own.layout, exchange.size
        )
        if exchange.rank != root:
            exchange.send_message(own, root)
            yield
            return
        for other in range(exchange.size):
            if other != root:
                exchange.receive_message(parts[other], other)
        parts[root].store(own.packed())
        yield
        total = bytearray(parts[0].packed())
        for other in range(1, exchange.size):
            operation.combine(parts[other].packed(), memoryview(total), own.layout, own.count)
        receive.store(total)


class LosesTail(Basic):
    """Large data: the last eight bytes are not passed on."""

    def schedule_gather(self, exchange, send, receive, root):
        if send is not None and send.size > 50_000 and exchange.rank != root:
            send = send.part(0, send.count - 1)
        return super().schedule_gather(exchange, send, receive, root)


class UsesUserTag(Basic):
    """Its messages have a tag of the program's."""

    def schedule_barrier(self, exchange):
        exchange._tag = 0
        return super().schedule_barrier(exchange)


class ForgetsCalls(Basic):
    """Messages of all calls have one tag, so that calls at once mix."""

    def schedule_allgather(self, exchange, send, receive):
        exchange._tag = -14
        return super().schedule_allgather(exchange, send, receive)

    def schedule_alltoall(self, exchange, send, receive):
        exchange._tag = -14
        return super().schedule_alltoall(exchange, send, receive)

    def schedule_scan(self, exchange, send, receive, operation):
        exchange._tag = -14
        return super().schedule_scan(exchange, send, receive, operation)


class Nothing(Poller):
    def poll(self):
        return 0


class LeavesPollers(Basic):
    """Each communicator has a poller that is never removed."""

    def __init__(self, communicator, values):
        super().__init__(communicator, values)
        communicator.context.engine.add_poller(Nothing())


class WaitsForEver(Basic):
    """An allreduce that does not hear of members that have left."""

    def allreduce(self, send, receive, operation):
        if any(proc.left for proc in self.communicator.procs):
            self.communicator.context.engine.wait_until(lambda: False)
        super().allreduce(send, receive, operation)


RUNS = [0]


class DiffersFromRunToRun(Basic):
    """What it does depends on how often it was used in this process."""

    def __init__(self, communicator, values):
        super().__init__(communicator, values)
        RUNS[0] += 1
        communicator.context.engine.call_later(RUNS[0] * 1000, lambda: None)

    def schedule_barrier(self, exchange):
        for _ in range(RUNS[0] % 5):
            yield from super().schedule_barrier(exchange)
        yield from super().schedule_barrier(exchange)


class NeverOffers(Basic):
    """Its query has nothing for anybody."""


PLANTED: dict[type[CollModule], str] = {
    BarrierLetsGo: "test_barrier",
    BcastFromRank0: "test_blocking[bcast]",
    IgnoresInPlace: "test_blocking[allgather]",
    IgnoresGaps: "test_blocking[alltoall]",
    WritesBehind: "test_blocking[scatter]",
    TakesAnyOrder: "test_order_of_operands[reduce]",
    LosesTail: "test_large[gather]",
    UsesUserTag: "test_a_programs_messages",
    ForgetsCalls: "test_all_at_once",
    LeavesPollers: "test_freed",
    WaitsForEver: "test_a_member_has_left[allreduce]",
    DiffersFromRunToRun: "test_same_seed_same_trace",
    NeverOffers: "test_serves_something",
}


def component(planted: type[Basic]) -> BasicComponent:
    class Mutant(BasicComponent):
        name = "mutant"

        def query(self, communicator):
            return None if planted is NeverOffers else planted(communicator, self.values)

    return Mutant()
