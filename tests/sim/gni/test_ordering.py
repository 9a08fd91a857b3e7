"""What memory ordering is for: without it flags, events and bytes overtake each other."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from ompy.frameworks.nic.gni import CqMode, MemoryHandle, Ordering, PostType, ReturnCode
from ompy_components.nic.gni.posts import FRAMES, PACKET

from tests.support.effort import THOROUGH
from tests.support.gni_job import GniRank, gni_world

BLOCK = bytes(range(1, 201))
SEEDS = range(100 if THOROUGH else 20)
MODE = CqMode.GLOBAL_EVENT | CqMode.REMOTE_EVENT


def seen(ordering: Ordering, seed: int, hosts: tuple[int, int] = (0, 0)) -> str:
    """What the receiver of two puts has when it is told of the first."""

    def active(rank: GniRank) -> None:
        posts = [rank.post(1, PostType.FMA_PUT, BLOCK, at, cq_mode=MODE) for at in (0, 1000)]
        assert all(rank.done(post) is ReturnCode.SUCCESS for post in posts)

    def passive(rank: GniRank) -> str:
        rank.take(rank.memory_queue)
        first, second = bytes(rank.memory[:200]), bytes(rank.memory[1000:1200])
        blank = bytes(200)
        if not {first, second} <= {BLOCK, blank}:
            return "parts"
        if first == second == blank:
            return "nothing"
        return "in order" if first == BLOCK else "second only"

    world = gni_world([active, passive], seed=seed, ordering=ordering, late=60, hosts=hosts)
    return str(world[1])


@pytest.mark.parametrize("ordering", Ordering)
def test_orderings_differ(ordering: Ordering) -> None:
    found = Counter(seen(ordering, seed) for seed in SEEDS)
    if ordering is Ordering.STRICT:
        assert set(found) == {"in order"}
    elif ordering is Ordering.DEFAULT:
        assert set(found) == {"in order", "second only"}
    else:
        assert "parts" in found, found


def test_strict_ordering_holds_between_hosts() -> None:
    assert {seen(Ordering.STRICT, seed, (0, 1)) for seed in SEEDS} == {"in order"}


@pytest.mark.parametrize("ordering", Ordering)
@pytest.mark.parametrize(
    ("generation", "hosts"), [("gemini", (0, 0)), ("aries", (0, 0)), ("aries", (0, 1))]
)
def test_a_sync_flag_comes_after_its_bytes(
    ordering: Ordering, generation: str, hosts: tuple[int, int]
) -> None:
    def active(rank: GniRank) -> None:
        code = rank.do(
            1,
            PostType.FMA_PUT_W_SYNCFLAG,
            BLOCK,
            8,
            sync_flag=77,
            sync_flag_address=0,
            cq_mode=MODE,
        )
        assert code is ReturnCode.SUCCESS

    def passive(rank: GniRank) -> bytes:
        def flagged() -> bool:
            rank.memory_queue.get_event()
            return rank.memory[0] == 77

        rank.wait(flagged)
        return bytes(rank.memory[8:208])

    for seed in SEEDS:
        world = gni_world(
            [active, passive],
            seed=seed,
            ordering=ordering,
            generation=generation,
            late=60,
            hosts=hosts,
        )
        assert world[1] == BLOCK


def test_aries_reads_the_local_memory_late_and_gemini_does_not() -> None:
    def active(rank: GniRank) -> None:
        for at in range(0, 1600, 200):
            source = bytearray(BLOCK)
            post = rank.post(1, PostType.FMA_PUT, source, at)
            source[:] = bytes(200)  # too early, on Aries
            rank.done(post)

    def passive(rank: GniRank) -> bytes:
        rank.fence()
        return bytes(rank.memory[:1600])

    def programs(generation: str, seed: int) -> bytes:
        def first(rank: GniRank) -> None:
            active(rank)
            rank.fence()

        return bytes(gni_world([first, passive], seed=seed, generation=generation, late=60)[1])

    assert all(programs("gemini", seed) == BLOCK * 8 for seed in range(5))
    assert any(programs("aries", seed) != BLOCK * 8 for seed in range(5))


def test_a_late_put_to_another_host_is_not_thousands_of_frames() -> None:
    """1 MiB in packets of 64 bytes, each a request and an answer of the fabric, took minutes."""
    data = bytes(random.Random(3).randbytes(1 << 20))
    asked: list[int] = []

    def active(rank: GniRank) -> None:
        write = rank.domain.far.write  # type: ignore[attr-defined]

        def counted(*arguments: object) -> None:
            asked.append(len(arguments[3]))  # type: ignore[arg-type]
            write(*arguments)

        rank.domain.far.write = counted  # type: ignore[attr-defined]
        rank.fence()  # it has registered
        local = memoryview(data)
        source = rank.register(local)
        put = rank.post(1, PostType.RDMA_PUT, local, local_handle=source, remote_handle=there[0])
        assert rank.done(put) is ReturnCode.SUCCESS
        rank.fence()

    def passive(rank: GniRank) -> bool:
        there.append(rank.register(room))
        rank.fence()
        rank.fence()
        return bytes(room) == data

    there: list[MemoryHandle] = []
    room = memoryview(bytearray(len(data)))
    seen = gni_world([active, passive], hosts=(0, 1), late=50)
    assert seen[1]
    assert len(asked) == FRAMES
    assert {size % PACKET for size in asked} == {0}
