"""What runs out, what fails, and what comes in another order: it goes on, or says why not."""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import pytest
from ompy.data.errors import MPIError
from ompy.frameworks.conduit import Transfer

from tests.support.conduit_parameters import NAMES
from tests.support.rdma_ranks import Count, RdmaRank, rdma_world

BOTH = pytest.mark.parametrize("generation", NAMES)
SIZES = (1, 100, 127, 129, 4097, 8192, 8193, 20_000)


def passive(_: RdmaRank) -> None:
    return None


def alone(program: Any, **settings: Any) -> Any:
    """Rank 0 does something with the segment of rank 1, which does nothing."""
    return rdma_world([program, passive], **settings)[0]


def flood(rank: RdmaRank, count: int = 24) -> dict[str, int]:
    """Begin many puts and gets of all kinds at once, and see that each is done, and right."""
    random = Random(3)
    told, locals_ = Count(), []
    for number in range(count):
        size = SIZES[number % len(SIZES)]
        local = memoryview(bytearray(random.randbytes(size)))
        locals_.append(local)
        rank.engine.put(1, number * 1000 % 997, local[:0], told, bulk=True)
        rank.engine.put(1, 0 if number else 1, local, told, bulk=True)
        rank.engine.get(1, 1 + number % 3, memoryview(bytearray(size)), told)
    rank.wait(lambda: told.puts == 2 * count and told.gets == count)
    back = memoryview(bytearray(8192))
    rank.put(1, 5, locals_[5])
    rank.get(1, 5, back)
    assert back == locals_[5]
    return rank.resources.counters


TIGHT: dict[str, dict[str, object]] = {
    "one descriptor": {"num_pd": 1},
    "one bounce buffer": {"bounce_size": 8192},
    "one registration": {"memreg": 1},
    "one of each": {"num_pd": 1, "bounce_size": 8192, "memreg": 1, "poll_burst": 1},
    "no bounce buffers": {"get_bounce_register_cutover": 0, "put_bounce_register_cutover": 0},
    "no fma": {"get_fma_rdma_cutover": 0, "put_fma_rdma_cutover": 0},
    "all fma": {"get_fma_rdma_cutover": 16384, "put_fma_rdma_cutover": 16384},
    "odd": {"get_bounce_register_cutover": 131, "put_bounce_register_cutover": 7},
}
STALLS = {
    "one descriptor": "alloc_pd_stall",
    "one bounce buffer": "alloc_bb_stall",
    "one registration": "mem_reg_stall",
    "one of each": "alloc_pd_stall",
}


@BOTH
@pytest.mark.parametrize("kind", TIGHT)
def test_small_pools_finish(generation: str, kind: str) -> None:
    settings = {"mem_consistency": "default", **TIGHT[kind]}
    counters = alone(flood, generation=generation, device={"late": 60}, **settings)
    if kind in STALLS:
        assert counters[STALLS[kind]], "it did run out"


NARROW: dict[str, dict[str, object]] = {
    "one post": {"posts": 1},
    "refuses often": {"refuse_every": 2},
    "refuses now and then": {"refuse_every": 7},
    "two registrations": {"registrations": 2},
}


@BOTH
@pytest.mark.parametrize("kind", NARROW)
def test_a_nic_that_refuses_is_asked_again(generation: str, kind: str) -> None:
    device = {"late": 60, **NARROW[kind]}
    counters = alone(
        flood, generation=generation, device=device, memreg=0, mem_consistency="default"
    )
    retries = ("post_fma_retry", "post_rdma_retry", "mem_reg_retry")
    delivered = {name: counters[name] for name in retries}
    if kind == "two registrations":  # the segment has one of them
        assert delivered["mem_reg_retry"]
    else:
        assert delivered["post_fma_retry"]
        assert delivered["post_rdma_retry"]


def test_as_many_descriptors_as_there_are_may_be_in_flight() -> None:
    def program(rank: RdmaRank) -> tuple[int, int]:
        told = Count()
        rank.context.engine.remove_poller(rank)  # nobody looks at completions but the engine
        for number in range(512):
            rank.engine.put(1, number, rank.outside[number : number + 1], told, bulk=True)
        assert rank.engine.under_way == 512
        assert told.puts == 0
        counters = rank.resources.counters
        assert not counters["alloc_pd_stall"]
        rank.engine.put(1, 512, rank.outside[512:513], told, bulk=True)
        assert counters["alloc_pd_stall"] == 1
        assert 0 < told.puts <= 10, "one poll, of a burst"
        while rank.engine.under_way:
            if not rank.engine.poll_local():
                rank.let_time_pass()
            assert told.puts <= 513
        rank.context.engine.add_poller(rank)
        return told.puts, rank.engine.under_way

    assert alone(program) == (513, 0)


class Ordered(Transfer):
    """Notes when it is done."""

    def __init__(self, number: int, order: list[int]) -> None:
        self.number, self.order = number, order

    def done(self, *, is_get: bool) -> None:
        self.order.append(self.number)


@BOTH
def test_completions_come_in_any_order_and_each_once(generation: str) -> None:
    def program(rank: RdmaRank) -> tuple[int, ...]:
        order: list[int] = []
        for number in range(12):
            local = rank.outside[number * 300 : number * 300 + 200 + number]
            if number % 2:
                rank.engine.put(1, number * 300, local, Ordered(number, order), bulk=True)
            else:
                rank.engine.get(1, number * 300, local, Ordered(number, order))
        rank.wait(lambda: len(order) == 12)
        assert sorted(order) == list(range(12))
        return tuple(order)

    found = {alone(program, generation=generation, seed=s, device={"late": 70}) for s in range(8)}
    assert len(found) > 4
    assert tuple(range(12)) not in found


@BOTH
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_against_a_model(generation: str, seed: int) -> None:
    """Three ranks put and get in areas of their own of each other's segments, many at a time."""
    choose = Random(seed)
    settings: dict[str, object] = {
        "num_pd": choose.choice([1, 2, 7, 512]),
        "bounce_size": choose.choice([8192, 16384, 262144]),
        "memreg": choose.choice([0, 1, 16]),
        "mem_consistency": choose.choice(["strict", "relaxed", "default"]),
    }
    device = {
        "late": choose.choice([0, 30, 80]),
        "refuse_every": choose.choice([0, 0, 3]),
        "registrations": choose.choice([3, 128]),
        "posts": choose.choice([1, 5, 1024]),
    }
    hosts = choose.choice([(0, 0, 0), (0, 0, 0), (0, 1, 1), (0, 1, 2)])
    area = 1 << 14  # and a fourth one in the segment, for local memory

    def program(rank: RdmaRank) -> None:
        own, size = rank.context.rank, rank.context.size
        random = Random(seed * 7 + own)
        peers = [peer for peer in range(size) if peer != own]
        models = {peer: bytearray(area) for peer in peers}
        for _ in range(6):
            one_round(rank, random, models, own * area)
        for peer, model in models.items():
            back = memoryview(bytearray(area))
            rank.get(peer, own * area, back)
            assert back == model
        rank.fence()

    rdma_world(
        [program] * 3,
        seed=seed,
        generation=generation,
        size=4 * area + 4,
        hosts=hosts,
        device=device,
        **settings,
    )


def one_round(rank: RdmaRank, random: Random, models: dict[int, bytearray], base: int) -> None:
    """Some transfers at a time that have nothing to do with each other."""
    area = len(next(iter(models.values())))
    shift = random.randrange(4)
    arenas = [rank.outside[shift:], rank.segment[3 * area + shift :]]
    told, gets, expected, at = Count(), [], 0, random.randrange(9)
    while at < area - 64:
        size = min(
            random.choice([random.randrange(1, 300), random.randrange(1, 20_000)]), area - at
        )
        peer = random.choice(list(models))
        local = random.choice(arenas)[at : at + size]
        expected += 1
        if random.random() < 0.5:
            bulk = size > rank.engine.max_put_local or random.random() < 0.5
            models[peer][at : at + size] = local[:] = random.randbytes(size)
            rank.engine.put(peer, base + at, local, told, bulk=bulk)
            if not bulk:
                local[:] = bytes(size)
        else:
            gets.append((local, bytes(models[peer][at : at + size])))
            rank.engine.get(peer, base + at, local, told)
        at += size + random.randrange(9)
    rank.wait(lambda: told.puts + told.gets == expected)
    for local, wanted in gets:
        assert local == wanted


# -- what fails


SELDOM = 1_000_000
NOW_AND_THEN = {"refuse_every": SELDOM}  # a NIC that is made so may be told otherwise


def refuse(rank: RdmaRank, everything: bool) -> None:
    """Have the NIC refuse all posts and registrations for the moment, or next to none."""
    rank.resources.nic._values.refuse_every = 1 if everything else SELDOM  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [8, 6000, 20_000])
def test_a_post_that_is_refused_for_ever_is_an_error_that_shows_it(size: int) -> None:
    def program(rank: RdmaRank) -> None:
        told = Count()
        local = rank.outside[:size]
        refuse(rank, True)
        what = "register memory" if size > 8192 else "post"
        with pytest.raises(MPIError, match=f"does not {what}.* of {size} bytes at offset 24 of"):
            rank.engine.put(1, 24, local, told, bulk=True)
        counters = rank.resources.counters
        retries = counters["post_fma_retry"] + counters["post_rdma_retry"]
        assert retries + counters["mem_reg_retry"] == 1000
        refuse(rank, False)
        assert not rank.engine.under_way
        rank.put(1, 24, local)
        assert told.puts == 0

    alone(program, device=NOW_AND_THEN, retry_patience=0.0)


def test_a_nic_that_refuses_for_long_is_waited_for() -> None:
    def program(rank: RdmaRank) -> int:
        refuse(rank, True)
        rank.context.engine.call_later(3_000_000, lambda: refuse(rank, False))
        rank.put(1, 0, rank.outside[:8])
        return rank.resources.counters["post_fma_retry"]

    assert alone(program, device=NOW_AND_THEN, retry_patience=1.0) > 1000


@BOTH
@pytest.mark.parametrize("size", [8, 129, 6000, 20_000])
def test_a_post_that_fails_is_told_and_leaves_nothing_behind(generation: str, size: int) -> None:
    def program(rank: RdmaRank) -> None:
        told = Count()
        length = len(rank.segment) + rank.engine.auxiliary_size(rank.resources.parameters)
        for begin in (rank.engine.put, rank.engine.get):
            more: dict[str, Any] = {"bulk": True} if begin == rank.engine.put else {}
            rank.engine.put(1, 0, rank.outside[:4], told, bulk=True)
            # the API has seen to it that this does not happen: the NIC does not trust it
            begin(1, length - 4, rank.outside[:size], told, **more)
            with pytest.raises(MPIError, match="of rank 1, flags .* failed: permission denied"):
                finish(rank)
            finish(rank)
        assert told.puts == 2
        assert told.gets == 0

    def finish(rank: RdmaRank) -> None:
        while rank.engine.under_way:
            if not rank.engine.poll_local():
                rank.let_time_pass()

    def quiet(rank: RdmaRank) -> None:
        rank.context.engine.remove_poller(rank)
        try:
            program(rank)
        finally:
            rank.context.engine.add_poller(rank)

    alone(quiet, generation=generation)


@pytest.mark.parametrize("tight", [{"num_pd": 1}, {"bounce_size": 8192}, {"memreg": 1}])
@pytest.mark.parametrize("size", [5000, 20_000])
def test_who_waits_for_what_a_failed_post_has_hears_of_it(size: int, tight: dict[str, Any]) -> None:
    def program(rank: RdmaRank) -> None:
        told, raised = Count(), 0
        rank.context.engine.remove_poller(rank)
        beyond = len(rank.segment) + rank.engine.auxiliary_size(rank.resources.parameters)
        for number in range(8):
            local = rank.outside[number * size : number * size + size]
            offset = beyond if number % 2 else number * size
            try:
                rank.engine.put(1, offset, local, told, bulk=True)
            except MPIError:
                raised += 1
        while rank.engine.under_way:
            try:
                if not rank.engine.poll_local():
                    rank.let_time_pass()
            except MPIError:
                raised += 1
        rank.context.engine.add_poller(rank)
        assert raised == 4 or "num_pd" not in tight, "one post at a time fails"
        assert raised
        rank.put(1, 3, rank.outside[:size])

    alone(program, size=1 << 18, device={"late": 60}, mem_consistency="default", **tight)


# -- what must not recurse


def test_messages_that_begin_puts_do_not_recurse() -> None:
    """With one descriptor each put waits for the one before, within what that has set off."""
    depths: list[int] = []

    def depth() -> int:
        frame, count = sys._getframe(), 0
        while frame is not None:
            frame, count = frame.f_back, count + 1  # type: ignore[assignment]
        return count

    def program(rank: RdmaRank) -> int:
        begun = [0]

        def put() -> None:
            begun[0] += 1
            rank.engine.put_then(1, 0, rank.outside[:9], again, keeps_payload=True)

        def again() -> None:
            depths.append(depth())
            for _ in range(2 if begun[0] < 300 else 0):
                put()

        put()
        rank.wait(lambda: len(depths) == begun[0])
        return len(depths)

    assert alone(program, num_pd=1) > 300
    assert max(depths) - min(depths) < 10
