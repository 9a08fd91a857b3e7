"""Programs of two real ranks with an emulated RDMA adapter; addresses go over the PML."""

from __future__ import annotations

import json
import time
from typing import Any

from ompy.engine.base import Poller
from ompy.frameworks.nic.base import LinkState
from ompy.frameworks.nic.verbs import (
    Access,
    Destination,
    Opcode,
    SendWork,
    Span,
    State,
    Timing,
    VerbsNic,
)
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import buffer, send, world
from tests.support.hca_pair import ALL, join_one

SECOND = 1_000_000_000  # ns
TIMING = Timing(timeout=12, retry_count=7, rnr_retry=7, rnr_timer=1)  # 17 ms; 10 us
SIZE = 1 << 20
CANARY = b"\xc5" * SIZE
OPCODES = (
    Opcode.RDMA_WRITE,
    Opcode.RDMA_READ,
    Opcode.FETCH_AND_ADD,
    Opcode.COMPARE_AND_SWAP,
)
WRONG = ("rkey", "lower bound", "upper bound", "access")


class Side(Poller):
    """One rank: the device its component offers, and what completed."""

    def __init__(self, process: RankProcess) -> None:
        self.process = process
        self.comm = world(process)
        self.engine = process.context.engine
        nics = process.context.find_nics(VerbsNic)
        # the same rail everywhere: in a laboratory the first one, else there is but loopback
        self.nic = next((nic for nic in nics if nic.identity.interface == "rail1"), nics[0])
        self.nic.open()
        self.domain = self.nic.domain()
        self.queue = self.nic.completion_queue(1000)
        self.memory = memoryview(bytearray(SIZE))
        self.region = self.domain.register(self.memory, ALL)
        self.done: list[Any] = []
        self.engine.add_poller(self)

    def poll(self) -> int:
        found = self.queue.poll(100)
        self.done += found
        return len(found)

    def arm(self) -> bool:
        return not self.queue.ready()

    def swap(self, said: Any) -> Any:
        """Tell the peer something, and hear what it says."""
        text = json.dumps(said).encode()
        pml, peer = self.process.pml, 1 - self.comm.rank
        memory, room = buffer(4096)
        receive = pml.irecv(self.comm, room, peer, 1)
        request = pml.isend(self.comm, send(text), peer, 1, STANDARD)
        pml.wait(self.comm, receive)
        pml.wait(self.comm, request)
        return json.loads(memory[: receive.length])

    def connect(self) -> Any:
        pair = self.domain.queue_pair(
            self.queue, self.queue, send_depth=100, receive_depth=100, inline_max=64
        )
        pair.modify(State.INIT)
        there = self.swap(list(pair.here()))
        join_one(pair, Destination(*there), TIMING)
        self.swap("connected")
        return pair

    def wait(self, count: int) -> list[str]:
        assert self.engine.wait_until(lambda: len(self.done) >= count, 20 * SECOND), "late"
        found = [one.status.name for one in self.done]
        self.done.clear()
        return found

    def close(self) -> None:
        self.swap("the end")
        self.engine.remove_poller(self)
        self.nic.close()


def wrong_access(process: RankProcess) -> list[Any]:
    """Put, get and atomics that may not be done, each on a connection of its own.

    Returns:
        Of rank 0 operation, what was wrong, status and state of the queue pair; of rank 1, whose
        memory has to stay as it was, the states.
    """
    side = Side(process)
    side.memory[:] = CANARY
    constant = side.domain.register(side.memory, Access(0))
    facts = (side.region.address, side.region.rkey, constant.address, constant.rkey)
    address, rkey, constant_address, constant_rkey = side.swap(facts)
    wrong = {
        "rkey": (address, rkey ^ 0x10),
        "lower bound": (address - 8, rkey),
        "upper bound": (address + SIZE, rkey),
        "access": (constant_address, constant_rkey),
    }
    found = []
    for opcode in OPCODES:
        for why, (at, key) in wrong.items():
            pair = side.connect()
            if process.context.rank == 0:
                work = SendWork(
                    opcode,
                    [Span(side.memory[:8], side.region.lkey)],
                    why,
                    remote_address=at,
                    rkey=key,
                    swap=1,
                )
                pair.post_send(work)
                (status,) = side.wait(1)
                found.append([opcode.name, why, status, pair.state.name])
            side.swap("tried")
            if process.context.rank:
                found.append(pair.state.name)
            assert side.memory == CANARY
            pair.close()
    good = side.connect()
    if process.context.rank == 0:
        side.memory[:8] = b"rightful"
        span = Span(side.memory[:8], side.region.lkey)
        good.post_send(SendWork(Opcode.RDMA_WRITE, [span], 0, remote_address=address, rkey=rkey))
        assert side.wait(1) == ["SUCCESS"]
    side.swap("written")
    assert side.memory[:8] == b"rightful"
    side.close()
    return found


def transfers(process: RankProcess) -> list[float]:
    """Write, read and send a megabyte each way; the seconds each took."""
    side = Side(process)
    rank = process.context.rank
    pair = side.connect()
    address, rkey = side.swap([side.region.address, side.region.rkey])
    own = memoryview(bytearray((index * 7 + rank) % 251 for index in range(SIZE)))
    theirs = bytes((index * 7 + 1 - rank) % 251 for index in range(SIZE))
    source = side.domain.register(own, ALL)
    target = memoryview(bytearray(SIZE))
    room = side.domain.register(target, ALL)
    took = []
    for opcode in (Opcode.RDMA_WRITE, Opcode.RDMA_READ, Opcode.SEND):
        pair.post_receive(Span(target, room.lkey), "receive")
        side.swap("posted")
        span = Span(target, room.lkey) if opcode is Opcode.RDMA_READ else Span(own, source.lkey)
        begun = time.monotonic()
        pair.post_send(SendWork(opcode, [span], 0, remote_address=address, rkey=rkey))
        assert set(side.wait(2 if opcode is Opcode.SEND else 1)) == {"SUCCESS"}
        took.append(time.monotonic() - begun)
        side.swap("done")
        expected = {
            Opcode.RDMA_WRITE: (side.memory, theirs),
            Opcode.RDMA_READ: (target, own),  # what it has written there before
            Opcode.SEND: (target, theirs),
        }
        found, wanted = expected[opcode]
        assert found == wanted, opcode
        target[:] = bytes(SIZE)
    side.close()
    return took


def busy_peer(process: RankProcess) -> list[Any]:
    """Rank 1 sleeps two seconds while it is written to, in which all tries run out many times.

    Returns:
        Of rank 0 how the write ended, the seconds it took, and whether it went back; of rank 1
        whether all is there.
    """
    side = Side(process)
    pair = side.connect()
    address, rkey = side.swap([side.region.address, side.region.rkey])
    result: list[Any] = []
    if process.context.rank:
        side.engine.remove_poller(side)  # its device does nothing from before the write begins
    side.swap("ready")
    begun = time.monotonic()
    if not process.context.rank:
        side.memory[:100_000] = b"x" * 100_000
        span = Span(side.memory[:100_000], side.region.lkey)
        pair.post_send(SendWork(Opcode.RDMA_WRITE, [span], 0, remote_address=address, rkey=rkey))
    side.swap("posted")
    if process.context.rank:
        time.sleep(2)
        side.engine.add_poller(side)
    else:
        result = [side.wait(1), time.monotonic() - begun, pair.requester.round > 0]
    side.swap("written")
    if process.context.rank:
        result = [bytes(side.memory[:100_000]) == b"x" * 100_000]
    side.close()
    return result


def pulled_cable(process: RankProcess) -> dict[str, Any]:
    """Both write until the cable is pulled, and again when it is back.

    Rank 0 says "going" when it is under way. What the ranks tell each other goes over another rail.

    Returns:
        How the first failed piece ended, when, the events of the device, and how the write
        afterwards ended.
    """
    side = Side(process)
    side.nic.failover = True
    pair = side.connect()
    address, rkey = side.swap([side.region.address, side.region.rkey])

    def write(through: Any) -> str:
        span = Span(side.memory[:5000], side.region.lkey)
        through.post_send(
            SendWork(Opcode.RDMA_WRITE, [span], 0, remote_address=address + 5000, rkey=rkey)
        )
        return side.wait(1)[0]

    turns = 0
    while (status := write(pair)) == "SUCCESS":
        turns += 1
        if turns == 10 and process.context.rank == 0:
            print("going", flush=True)
    failed = time.monotonic()
    # whose own link is down hears of it; the other has no news of its own
    side.engine.wait_until(lambda: side.nic.link is LinkState.UP, 20 * SECOND)
    events = [event.kind.name for event in side.nic.events()]
    pair.close()
    afterwards = "never"
    for _ in range(20):
        again = side.connect()
        outcome = write(again)
        outcomes = [outcome, side.swap(outcome)]
        again.close()
        if outcomes == ["SUCCESS", "SUCCESS"]:
            afterwards = "SUCCESS"
            break
    side.close()
    return {"status": status, "failed": failed, "events": events, "afterwards": afterwards}
