"""What verbs do, on real sockets and on simulated ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ompy.frameworks.nic.verbs import Opcode

from tests.support.hca_pair import End, ends, remote, send, until
from tests.support.networks import World, two_networks


@pytest.fixture(params=["real", "virtual"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with two_networks(request.param) as made:
        yield made


def fill(end: End) -> None:
    end.memory[:] = bytes(index * 7 % 251 for index in range(len(end.memory)))


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 20_000])
def test_send(world: World, size: int) -> None:
    near, far = ends(world)
    fill(near)
    far.pairs[0].post_receive(far.span(100, 30_000), "receive")
    near.pairs[0].post_send(send(near, 3, size))
    until(world, (near, far), lambda: bool(near.done and far.done))
    assert near.outcome() == [(Opcode.SEND, "SUCCESS", "send")]
    assert far.outcome() == [(Opcode.RECEIVE, "SUCCESS", "receive")]
    assert far.done[0].size == size
    assert far.done[0].number == far.pairs[0].number
    assert far.memory[100 : 100 + size] == near.memory[3 : 3 + size]
    assert not any(far.memory[100 + size :])


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 60_000])
def test_write(world: World, size: int) -> None:
    near, far = ends(world)
    fill(near)
    near.pairs[0].post_send(remote(Opcode.RDMA_WRITE, near, 3, size, far.region, 50))
    until(world, (near, far), lambda: bool(near.done))
    assert near.outcome() == [(Opcode.RDMA_WRITE, "SUCCESS", "RDMA_WRITE")]
    assert far.memory[50 : 50 + size] == near.memory[3 : 3 + size]
    assert not any(far.memory[:50])
    assert not any(far.memory[50 + size :])
    assert far.done == []


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 60_000])
def test_read(world: World, size: int) -> None:
    near, far = ends(world)
    fill(far)
    near.pairs[0].post_send(remote(Opcode.RDMA_READ, near, 3, size, far.region, 50))
    until(world, (near, far), lambda: bool(near.done))
    assert near.outcome() == [(Opcode.RDMA_READ, "SUCCESS", "RDMA_READ")]
    assert near.done[0].size == size
    assert near.memory[3 : 3 + size] == far.memory[50 : 50 + size]
    assert not any(near.memory[:3])
    assert not any(near.memory[3 + size :])


def number(memory: memoryview) -> int:
    return memory.cast("B")[:8].cast("Q")[0]


def test_atomics(world: World) -> None:
    near, far = ends(world)
    far.memory[:8].cast("Q")[0] = 2**64 - 1
    pair = near.pairs[0]
    pair.post_send(remote(Opcode.FETCH_AND_ADD, near, 0, 8, far.region, swap=3))
    pair.post_send(remote(Opcode.COMPARE_AND_SWAP, near, 8, 8, far.region, compare=2, swap=9))
    pair.post_send(remote(Opcode.COMPARE_AND_SWAP, near, 16, 8, far.region, compare=2, swap=5))
    until(world, (near, far), lambda: len(near.done) == 3)
    assert {status for _, status, _ in near.outcome()} == {"SUCCESS"}
    assert [number(near.memory[at : at + 8]) for at in (0, 8, 16)] == [2**64 - 1, 2, 9]
    assert number(far.memory) == 9
