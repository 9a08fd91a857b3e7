"""Programs of puts and gets for both worlds; each rank runs the whole function."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from ompy.frameworks.btl import (
    BAD_PARAM,
    COMPLETED,
    NOT_AVAILABLE,
    REMOTE_READ,
    REMOTE_WRITE,
    SEND_ALWAYS_CALLBACK,
)
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import pattern
from tests.sim.rdma.peer import Peer

ROOM = 300_000
BLANK = 0x5A


def target(peer: Peer) -> int:
    """Who is used: the next rank, oneself where there is none."""
    return (peer.context.rank + 1) % peer.context.size


def source(peer: Peer) -> int:
    return (peer.context.rank - 1) % peer.context.size


def sizes(peer: Peer) -> list[int]:
    edges = (peer.module.eager_limit, peer.module.max_send_size, 65_536)
    around = {edge + step for edge in edges for step in (-49, -48, -1, 0, 1)}
    return [0, 1, 2, 7, 4095, *sorted(size for size in around if size < ROOM - 100)]


def all_sizes(peer: Peer) -> int:
    """Puts and gets of all sizes at odd offsets move these bytes, and no others."""
    memory = bytearray([BLANK]) * ROOM
    handle = peer.expose(memory)
    handles = peer.swap(handle)
    there = target(peer)
    for number, size in enumerate(sizes(peer)):
        peer.meet()
        offset = 3 + number * 2
        data = pattern(size, number + peer.context.rank)
        put = peer.start("put", there, data, offset, handles[there], SEND_ALWAYS_CALLBACK)
        peer.finish(put)
        assert put.good, (size, put.result, put.statuses)
        assert put.statuses == [0], "SEND_ALWAYS_CALLBACK"
        peer.meet()
        expected = pattern(size, number + source(peer))
        assert memory[offset : offset + size] == expected
        assert set(memory[:offset]) <= {BLANK}
        assert set(memory[offset + size :]) <= {BLANK}
        room = bytearray([1]) * (size + 2)
        get = peer.start("get", there, memoryview(room)[1:-1], offset, handles[there])
        peer.finish(get)
        assert get.good
        assert room == b"\1" + data + b"\1"
        peer.meet()
        memory[:] = bytes([BLANK]) * ROOM
    peer.meet()
    peer.module.deregister_mem(handle)
    return len(peer.transfers)


def many_at_once(peer: Peer) -> int:
    """Many under way in both directions, fragments between them, every byte in its place."""
    count, piece = 60, 4000
    memory = bytearray(count * piece)
    handle, handles = None, {}
    handle = peer.expose(memory)
    handles = peer.swap(handle)
    random = Random(peer.context.rank)
    order = list(range(count))
    random.shuffle(order)
    puts = []
    for number in order:
        data = pattern(random.randrange(piece), number)
        puts.append((number, data, None))
    begun = [
        (number, data, peer.start("put", rank, data, number * piece, handles[rank]))
        for number, data, _ in puts
        for rank in [target(peer)]
    ]
    peer.finish(*[transfer for _, _, transfer in begun])
    assert all(transfer.good for _, _, transfer in begun)
    peer.meet()
    gets = [
        (
            data,
            peer.start("get", target(peer), bytearray(len(data)), n * piece, handles[target(peer)]),
        )
        for n, data, _ in begun
    ]
    for index, (data, transfer) in enumerate(gets):
        if index % 10 == 0 and peer.others:
            peer.tell(target(peer), b"between")
        peer.finish(transfer)
        assert transfer.good
        assert transfer.local == data
    for index in range(0, len(gets), 10):
        if peer.others:
            assert peer.hear(source(peer)) == b"between", index
    peer.meet()
    peer.module.deregister_mem(handle)
    return len(begun)


def put_then_tell(peer: Peer) -> int:
    """A completed put is in the peer's memory before a fragment sent afterwards arrives."""
    memory = bytearray(200_000)
    handle = peer.expose(memory)
    handles = peer.swap(handle)
    checked = 0
    for number, size in enumerate((1, 5000, 150_000, 30, 200_000, 64)):
        if peer.context.size == 1:
            continue
        if peer.context.rank == 0:
            put = peer.start("put", 1, pattern(size, number), 0, handles[1])
            peer.finish(put)
            assert put.good
            peer.tell(1, b"look")
            assert peer.hear(1) == b"seen"
        elif peer.context.rank == 1:
            assert peer.hear(0) == b"look"
            assert memory[:size] == pattern(size, number)
            peer.tell(0, b"seen")
            checked += 1
    peer.meet()
    peer.module.deregister_mem(handle)
    return checked


def refusals(peer: Peer) -> list[str]:
    """What names no memory, or more than there is, is refused; nothing is touched, all goes on."""
    memory = bytearray([BLANK]) * 1000
    good = peer.expose(memory)
    readable = peer.expose(memory, REMOTE_READ)
    writable = peer.expose(memory, REMOTE_WRITE)
    stale = peer.expose(memory)
    handles = [peer.swap(handle) for handle in (good, readable, writable, stale)]
    peer.module.deregister_mem(stale)
    peer.meet()
    rank = target(peer)
    fine, read, write, old = (known[rank] for known in handles)
    forged = fine[:-8] + (10**6).to_bytes(8, "little")
    other = handles[0][source(peer)] if peer.context.size > 2 else forged
    attempts: list[tuple[str, str, int, int, bytes]] = [
        ("put", "garbage", 0, 8, b"\xff" * len(fine)),
        ("put", "short", 0, 8, fine[:-1]),
        ("put", "empty", 0, 8, b""),
        ("put", "forged", 0, 8, forged),
        ("get", "forged", 0, 8, forged),
        ("put", "of another rank", 0, 8, other),
        ("put", "given back", 0, 8, old),
        ("get", "given back", 0, 8, old),
        ("put", "beyond", 996, 8, fine),
        ("get", "beyond", 996, 8, fine),
        ("put", "far beyond", 1 << 40, 8, fine),
        ("get", "larger than all", 0, 1001, fine),
        ("put", "nothing, beyond", 1001, 0, fine),
        ("put", "not writable", 0, 8, read),
        ("get", "not readable", 0, 8, write),
    ]
    wrong = []
    for how, what, offset, size, handle in attempts:
        local = bytearray(b"\x11" * size)
        transfer = peer.start(how, rank, local, offset, handle)
        peer.finish(transfer)
        answers = [*transfer.statuses, transfer.result]
        if transfer.good or BAD_PARAM not in answers:
            wrong.append(f"{how} {what}: {answers}")
        if local != b"\x11" * size:
            wrong.append(f"{how} {what} touched the asker")
    peer.meet()
    if memory != bytes([BLANK]) * 1000:
        wrong.append("memory was touched")
    peer.meet()
    after = [
        peer.start("put", rank, b"12345678", 992, fine),
        peer.start("put", rank, b"", 1000, fine),
        peer.start("get", rank, bytearray(8), 0, read),
    ]
    peer.finish(*after)
    wrong += [f"afterwards: {t.result} {t.statuses}" for t in after if not t.good]
    peer.meet()
    assert memory[992:] == b"12345678"
    for handle in (good, readable, writable):
        peer.module.deregister_mem(handle)
    return wrong


def limits(peer: Peer) -> None:
    """More than the limit, and what misses the alignment, is not available; up to it is."""
    memory = bytearray(4096)
    handle = peer.expose(memory)
    handles = peer.swap(handle)
    rank = target(peer)
    for how in ("put", "get"):
        for offset, size, available in (
            (0, 1024, True),
            (0, 1023, False),
            (0, 1025, False),
            (0, 1028, False),
            (4, 1020, True),
            (2, 1020, False),
            (4, 0, True),
        ):
            transfer = peer.start(how, rank, bytearray(size), offset, handles[rank])
            peer.finish(transfer)
            assert transfer.good is available, (how, offset, size)
            if not available:
                assert transfer.result == NOT_AVAILABLE
    peer.meet()
    peer.module.deregister_mem(handle)


def large(peer: Peer) -> str:
    """Some megabytes each way, from read-only memory too."""
    size = 5_000_001
    memory = bytearray(size)
    handle = peer.expose(memory)
    handles = peer.swap(handle)
    rank = target(peer)
    data = pattern(size, peer.context.rank)
    put = peer.start("put", rank, data, 0, handles[rank])
    peer.finish(put)
    assert put.good
    peer.meet()
    assert memory == pattern(size, source(peer))
    room = bytearray(size - 1)
    get = peer.start("get", rank, room, 1, handles[rank])
    peer.finish(get)
    assert get.good
    assert room == data[1:]
    peer.meet()
    peer.module.deregister_mem(handle)
    return "at once" if put.result == COMPLETED else "later"


def everything(process: RankProcess) -> list[Any]:
    """All programs, on the BTLs of a real rank beside its PML."""
    names = {module.name for module in process.context.btls}
    results: list[Any] = []
    for name in sorted(names - {"self"} or names):
        modules = [module for module in process.context.btls if module.name == name]
        peer = Peer(process.context, modules)
        programs: list[Callable[[Peer], Any]] = [all_sizes, many_at_once, put_then_tell, refusals]
        results += [name, *(program(peer) for program in (*programs, large))]
    return results
