"""How work fails, on real sockets and on simulated ones: statuses, order, and memory untouched."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import Access, Opcode, SendWork, Span, State, Timing

from tests.support.hca_pair import ALL, TIMING, End, ends, join, remote, send, until
from tests.support.networks import World, two_networks

CANARY = b"\xc5" * (1 << 16)
REMOTE = (
    Opcode.RDMA_WRITE,
    Opcode.RDMA_READ,
    Opcode.FETCH_AND_ADD,
    Opcode.COMPARE_AND_SWAP,
)
NEEDS = {
    Opcode.RDMA_WRITE: Access.REMOTE_WRITE,
    Opcode.RDMA_READ: Access.REMOTE_READ,
    Opcode.FETCH_AND_ADD: Access.REMOTE_ATOMIC,
    Opcode.COMPARE_AND_SWAP: Access.REMOTE_ATOMIC,
}


@pytest.fixture(params=["real", "virtual"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with two_networks(request.param) as made:
        yield made


def wrong_key(far: End, opcode: Opcode) -> tuple[int, int]:
    return far.region.rkey ^ 0x10, 0


def local_key(far: End, opcode: Opcode) -> tuple[int, int]:
    return far.region.lkey, 0


def below(far: End, opcode: Opcode) -> tuple[int, int]:
    return far.region.rkey, -8


def beyond(far: End, opcode: Opcode) -> tuple[int, int]:
    return far.region.rkey, len(far.memory)


def across_the_end(far: End, opcode: Opcode) -> tuple[int, int]:
    if opcode in (Opcode.FETCH_AND_ADD, Opcode.COMPARE_AND_SWAP):
        return far.region.rkey, len(far.memory)  # aligned words are in or out
    return far.region.rkey, len(far.memory) - 7


def another_domain(far: End, opcode: Opcode) -> tuple[int, int]:
    other = far.nic.domain().register(far.memory, ALL)
    return other.rkey, other.address - far.region.address


def closed(far: End, opcode: Opcode) -> tuple[int, int]:
    far.region.close()
    return far.region.rkey, 0


def no_access(far: End, opcode: Opcode) -> tuple[int, int]:
    other = far.domain.register(far.memory, ALL & ~NEEDS[opcode])
    return other.rkey, other.address - far.region.address


@pytest.mark.parametrize("opcode", REMOTE, ids=lambda opcode: opcode.name)
@pytest.mark.parametrize(
    "how",
    [wrong_key, local_key, below, beyond, across_the_end, another_domain, closed, no_access],
    ids=lambda how: how.__name__,
)
def test_memory_that_may_not_be_used(
    world: World, opcode: Opcode, how: Callable[[End, Opcode], tuple[int, int]]
) -> None:
    near, far = ends(world)
    near.memory[:], far.memory[:] = CANARY, CANARY
    far.pairs[0].post_receive(far.span(0, 10), "receive")
    key, at = how(far, opcode)
    pair = near.pairs[0]
    size = 10 if opcode in (Opcode.RDMA_WRITE, Opcode.RDMA_READ) else 8
    work = remote(opcode, near, 0, size, far.region, at, rkey=key, swap=1, context="bad")
    near.memory[:10] = b"0123456789"
    pair.post_send(work)
    pair.post_send(send(near, 0, 1, "behind"))
    until(world, (near, far), lambda: len(near.done) == 2 and bool(far.done))
    assert near.outcome() == [
        (opcode, "REM_ACCESS_ERR", "bad"),
        (Opcode.SEND, "WR_FLUSH_ERR", "behind"),
    ]
    assert far.outcome() == [(Opcode.RECEIVE, "WR_FLUSH_ERR", "receive")]
    assert pair.state is far.pairs[0].state is State.ERR
    assert far.memory == CANARY
    assert near.memory[:10] == b"0123456789"
    assert near.memory[10:] == CANARY[10:]


def test_a_write_of_many_packets_that_ends_outside_touches_nothing(world: World) -> None:
    near, far = ends(world)
    far.memory[:] = CANARY
    near.pairs[0].post_send(remote(Opcode.RDMA_WRITE, near, 0, 60_000, far.region, 6_000))
    until(world, (near, far), lambda: bool(near.done))
    assert near.outcome() == [(Opcode.RDMA_WRITE, "REM_ACCESS_ERR", "RDMA_WRITE")]
    assert far.memory == CANARY


def test_work_before_the_failed_one_is_done(world: World) -> None:
    near, far = ends(world)
    pair = near.pairs[0]
    for index in range(3):
        near.memory[index] = index + 1
        pair.post_send(remote(Opcode.RDMA_WRITE, near, index, 1, far.region, index, context=index))
    pair.post_send(remote(Opcode.RDMA_READ, near, 100, 8, far.region, rkey=1, context="bad"))
    for index in range(3):
        pair.post_send(send(near, 0, 1, index, signaled=False))
    until(world, (near, far), lambda: len(near.done) == 7)
    assert near.outcome() == [
        *((Opcode.RDMA_WRITE, "SUCCESS", index) for index in range(3)),
        (Opcode.RDMA_READ, "REM_ACCESS_ERR", "bad"),
        *((Opcode.SEND, "WR_FLUSH_ERR", index) for index in range(3)),
    ]
    assert far.memory[:4].tobytes() == b"\1\2\3\0"


def test_flushed_in_order_sends_first(world: World) -> None:
    near, far = ends(world)
    pair = near.pairs[0]
    for index in range(3):
        pair.post_receive(near.span(0, 10), f"receive {index}")
    for index in range(3):
        pair.post_send(send(near, 0, 1, f"send {index}", signaled=False))
    pair.modify(State.ERR)
    pair.modify(State.ERR)
    until(world, (near,), lambda: len(near.done) >= 6)
    expected = [(Opcode.SEND, "WR_FLUSH_ERR", f"send {index}") for index in range(3)]
    expected += [(Opcode.RECEIVE, "WR_FLUSH_ERR", f"receive {index}") for index in range(3)]
    assert near.outcome() == expected
    near.done.clear()
    pair.post_send(send(near, 0, 1, "late send"))
    pair.post_receive(near.span(0, 10), "late receive")
    until(world, (near,), lambda: len(near.done) >= 2)
    assert near.outcome() == [
        (Opcode.SEND, "WR_FLUSH_ERR", "late send"),
        (Opcode.RECEIVE, "WR_FLUSH_ERR", "late receive"),
    ]
    assert far.done == []


def test_reset_forgets_without_a_word(world: World) -> None:
    near, _ = ends(world)
    pair = near.pairs[0]
    pair.post_receive(near.span(0, 10), 0)
    pair.post_send(send(near, 0, 1))
    first = pair.here().first_packet
    pair.modify(State.RESET)
    near.poll()
    assert near.done == []
    assert pair.here().first_packet != first
    with pytest.raises(NicError, match="RESET"):
        pair.post_receive(near.span(0, 10), 0)


def test_a_message_longer_than_the_buffer(world: World) -> None:
    near, far = ends(world)
    far.memory[:] = CANARY
    far.pairs[0].post_receive(far.span(0, 5_000), "receive")
    far.pairs[0].post_receive(far.span(0, 5_000), "other")
    near.pairs[0].post_send(send(near, 0, 5_001))
    until(world, (near, far), lambda: bool(near.done) and len(far.done) == 2)
    assert near.outcome() == [(Opcode.SEND, "REM_INV_REQ_ERR", "send")]
    assert far.outcome() == [
        (Opcode.RECEIVE, "LOC_LEN_ERR", "receive"),
        (Opcode.RECEIVE, "WR_FLUSH_ERR", "other"),
    ]
    assert far.memory[5_000:] == CANARY[5_000:]


@pytest.mark.parametrize("what", ["key", "bounds", "domain", "access", "closed"])
def test_local_memory_of_a_send(world: World, what: str) -> None:
    near, far = ends(world)
    far.pairs[0].post_receive(far.span(0, 100), "receive")
    span = {
        "key": Span(near.memory[:8], near.region.lkey ^ 0x10),
        "bounds": Span(memoryview(bytearray(8)), near.region.lkey),
        "domain": Span(near.memory[:8], near.nic.domain().register(near.memory, ALL).lkey),
        "access": Span(near.memory[:8], near.domain.register(near.memory, Access(0)).lkey),
        "closed": Span(near.memory[:8], near.region.lkey),
    }[what]
    opcode = Opcode.RDMA_READ if what == "access" else Opcode.SEND
    good = near.domain.register(near.memory, ALL)
    if what == "closed":
        near.region.close()
    pair = near.pairs[0]
    pair.post_send(SendWork(Opcode.SEND, [Span(near.memory[:1], good.lkey)], "good"))
    pair.post_send(
        SendWork(opcode, [span], "bad", remote_address=far.region.address, rkey=far.region.rkey)
    )
    until(world, (near, far), lambda: len(near.done) == 2)
    assert near.outcome() == [(Opcode.SEND, "SUCCESS", "good"), (opcode, "LOC_PROT_ERR", "bad")]
    assert pair.state is State.ERR
    assert far.pairs[0].state is State.RTS


def test_a_receive_buffer_that_may_not_be_written(world: World) -> None:
    near, far = ends(world)
    far.memory[:] = CANARY
    read_only = far.domain.register(far.memory, Access(0))
    far.pairs[0].post_receive(Span(far.memory[:100], read_only.lkey), "receive")
    near.pairs[0].post_send(send(near, 0, 8))
    until(world, (near, far), lambda: bool(near.done and far.done))
    assert near.outcome() == [(Opcode.SEND, "REM_OP_ERR", "send")]
    assert far.outcome() == [(Opcode.RECEIVE, "LOC_PROT_ERR", "receive")]
    assert far.memory == CANARY


def test_an_atomic_that_is_not_aligned(world: World) -> None:
    near, far = ends(world)
    near.pairs[0].post_send(remote(Opcode.FETCH_AND_ADD, near, 0, 8, far.region, 4, swap=1))
    until(world, (near, far), lambda: bool(near.done))
    assert near.outcome() == [(Opcode.FETCH_AND_ADD, "REM_INV_REQ_ERR", "FETCH_AND_ADD")]
    assert not any(far.memory[:16])


def test_an_atomic_of_another_size(world: World) -> None:
    near, far = ends(world)
    near.pairs[0].post_send(remote(Opcode.FETCH_AND_ADD, near, 0, 4, far.region, swap=1))
    until(world, (near, far), lambda: bool(near.done))
    assert near.outcome() == [(Opcode.FETCH_AND_ADD, "LOC_LEN_ERR", "FETCH_AND_ADD")]


def test_the_region_is_closed_while_a_write_arrives(world: World) -> None:
    """What the later packets would have written stays as it is."""
    near, far = ends(world, mtu=256, window=4)
    far.memory[:] = CANARY
    near.pairs[0].post_send(remote(Opcode.RDMA_WRITE, near, 0, 60_000, far.region))
    until(world, (near, far), lambda: far.memory[0] == 0)
    far.region.close()
    left = far.memory.tobytes()
    until(world, (near, far), lambda: bool(near.done))
    assert near.outcome() == [(Opcode.RDMA_WRITE, "REM_ACCESS_ERR", "RDMA_WRITE")]
    assert far.memory == left


def test_no_receive_buffer(world: World) -> None:
    near, far = ends(world)
    for end in (near, far):
        end.pairs[0].modify(State.RESET)
        end.pairs[0].modify(State.INIT)
    join(near.pairs[0], far.pairs[0], TIMING._replace(rnr_retry=3))
    near.pairs[0].post_send(send(near, 0, 8))
    until(world, (near, far), lambda: bool(near.done))
    assert near.outcome() == [(Opcode.SEND, "RNR_RETRY_EXC_ERR", "send")]
    assert "3 retries" in near.done[0].detail
    assert far.pairs[0].state is State.RTS


def test_a_buffer_that_comes_late(world: World) -> None:
    near, far = ends(world)
    near.pairs[0].post_send(send(near, 0, 8))
    rounds = iter(range(200))
    until(world, (near, far), lambda: next(rounds) > 100)
    assert not near.done
    far.pairs[0].post_receive(far.span(0, 10), "receive")
    until(world, (near, far), lambda: bool(near.done and far.done))
    assert near.outcome() == [(Opcode.SEND, "SUCCESS", "send")]


@pytest.mark.parametrize("why", ["closed", "reset", "failed", "device closed"])
def test_a_peer_that_would_not_answer(world: World, why: str) -> None:
    """Tries count though nobody says that the path is dead."""
    near, far = ends(world)
    if why == "closed":
        far.pairs[0].close()
    elif why == "device closed":
        far.nic.close()
    else:
        far.pairs[0].modify(State.RESET if why == "reset" else State.ERR)
    near.pairs[0].post_send(send(near, 0, 8))
    near.pairs[0].post_receive(near.span(0, 8), "receive")
    sides = (near,) if why == "device closed" else (near, far)
    until(world, sides, lambda: len(near.done) == 2)
    assert near.outcome() == [
        (Opcode.SEND, "RETRY_EXC_ERR", "send"),
        (Opcode.RECEIVE, "WR_FLUSH_ERR", "receive"),
    ]
    assert "not there, not ready or has failed" in near.done[0].detail


def test_the_peer_is_not_ready_to_receive_yet(world: World) -> None:
    """Its queue pair is in INIT for a while: what is sent meanwhile is sent again."""
    near, far = ends(world)
    near_pair, far_pair = near.pair(), far.pair()
    near_pair.modify(State.RTR, there=far_pair.here(), timing=TIMING)
    near_pair.modify(State.RTS, timing=Timing(12, 7, 7, 1))
    far_pair.post_receive(far.span(0, 8), "receive")
    near_pair.post_send(send(near, 0, 8))
    rounds = iter(range(100))
    until(world, (near, far), lambda: next(rounds) > 5)
    far_pair.modify(State.RTR, there=near_pair.here(), timing=TIMING)
    until(world, (near, far), lambda: bool(near.done and far.done))
    assert near.outcome() == [(Opcode.SEND, "SUCCESS", "send")]
