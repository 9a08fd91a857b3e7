"""Puts and gets of every size and alignment, on both NICs, and what they use for it."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
from ompy.frameworks.nic.gni import GET_ALIGNMENT

from tests.support.conduit_parameters import NAMES
from tests.support.rdma_ranks import Count, RdmaRank, rdma_world

MIB = 1 << 20
EDGES = (1, 2, 3, 4, 127, 128, 129, 4095, 4096, 4097, 8191, 8192, 8193, 16_385)
BOTH = pytest.mark.parametrize("generation", NAMES)


def passive(_: RdmaRank) -> None:
    return None


def alone(program: Any, **settings: Any) -> Any:
    """Rank 0 does something with the segment of rank 1, which does nothing."""
    return rdma_world([program, passive], **settings)[0]


@BOTH
@pytest.mark.parametrize(("late", "hosts"), [(0, (0, 0)), (50, (0, 0)), (50, (0, 1))])
def test_every_size_and_alignment(generation: str, late: int, hosts: tuple[int, int]) -> None:
    """Bytes arrive, from memory inside and outside the segment, and none beside them change."""

    def program(rank: RdmaRank) -> int:
        random = Random(1)
        count = 0
        rank.outside[:] = random.randbytes(len(rank.outside))
        model = bytearray(len(rank.segment))
        shifts = range(GET_ALIGNMENT) if not late else (0, 3)
        sizes = EDGES if hosts == (0, 0) else EDGES[1::3]
        for size, there, here in itertools.product(sizes, shifts, shifts):
            for memory, bulk in itertools.product((rank.outside, rank.segment), (True, False)):
                if not bulk and size > rank.engine.max_put_local:
                    continue
                local = memory[100 + here : 100 + here + size]
                local[:] = random.randbytes(size)
                rank.put(1, 64 + there, local, bulk=bulk)
                model[64 + there : 64 + there + size] = local
                around = memory[30_000 + here - 4 : 30_000 + here + size + 4]
                around[:] = b"\xee" * len(around)
                rank.get(1, 64 + there, around[4:-4])
                assert around[:4] == around[-4:] == b"\xee" * 4
                assert around[4:-4] == local
                count += 1
        whole = memoryview(bytearray(len(model)))
        rank.get(1, 0, whole)
        assert whole == model
        return count

    done = alone(
        program,
        generation=generation,
        device={"late": late},
        hosts=hosts,
        mem_consistency="default",
    )
    assert done > 40


@BOTH
@pytest.mark.parametrize(
    ("size", "where", "used"),
    [
        (128, "outside", "immediate"),
        (132, "outside", "bounce"),
        (8192, "outside", "bounce"),
        (8196, "outside", "register"),
        (8196, "segment", "segment"),
    ],
)
def test_cutovers_are_where_they_should_be(
    generation: str, size: int, where: str, used: str
) -> None:
    def program(rank: RdmaRank) -> dict[str, int]:
        rank.get(1, 0, getattr(rank, where)[:size])
        return dict(rank.resources.counters)

    kind = "fma_get" if size <= 4096 else "rdma_get"
    assert alone(program, generation=generation) == {used: 1, kind: 1}
    moved = {
        "get_fma_rdma_cutover": size - 1,
        "get_bounce_register_cutover": size if used == "register" else size - 1,
    }
    expected = {"bounce": "register", "register": "bounce"}.get(used, used)
    found = alone(program, generation=generation, **moved)
    assert found == {expected: 1, "rdma_get": 1}


@BOTH
@pytest.mark.parametrize("size", [MIB - 1, MIB, MIB + 1, 3 * MIB + 5])
@pytest.mark.parametrize("where", ["outside", "segment"])
def test_large_transfers_are_cut_and_all_but_the_last_waited_for(
    generation: str, size: int, where: str
) -> None:
    data = Random(size).randbytes(size)

    def program(rank: RdmaRank) -> tuple[int, int]:
        local = getattr(rank, where)
        local[:size] = data
        count, posts = Count(), rank.resources.counters
        rank.engine.put(1, 8, local[:size], count, bulk=True)
        cut = (size - 1) // MIB * MIB
        peer = rank.world[1]
        assert peer.segment[8 : 8 + cut] == data[:cut], "all but the last are there"
        assert rank.engine.under_way <= 1
        rank.wait(lambda: count.puts == 1)
        assert peer.segment[8 : 8 + size] == data
        local[:size] = bytes(size)
        rank.engine.get(1, 8, local[:size], count)
        assert local[:cut] == data[:cut]
        rank.wait(lambda: count.gets == 1)
        assert local[:size] == data
        return posts["rdma_put"] + posts["fma_put"], posts["register"]

    posts, registered = rdma_world(
        [program, passive],
        generation=generation,
        size=4 * MIB,
        device={"late": 30},
        mem_consistency="default",
    )[0]
    assert posts == -(-size // MIB)
    pieces = 2 * (size // MIB)  # those beyond are a few bytes
    assert registered == (pieces or 2 if where == "outside" else 0)


@BOTH
@pytest.mark.parametrize("size", [1, 100, 128, 129, 4096, 4097, 8192])
def test_a_put_that_is_not_bulk_has_let_go_of_its_memory(generation: str, size: int) -> None:
    def program(rank: RdmaRank) -> None:
        for memory in (rank.outside, rank.segment):
            count = Count()
            local = memory[3 : 3 + size]
            local[:] = b"\x11" * size
            rank.engine.put(1, 5, local, count, bulk=False)
            local[:] = b"\x99" * size
            while not count.puts:
                rank.let_time_pass()
            rank.get(1, 5, local)
            assert local == b"\x11" * size

    for seed in range(3):
        alone(program, generation=generation, seed=seed, device={"late": 80})


def test_a_bulk_put_reads_its_memory_late_on_aries() -> None:
    """What the test above relies on can happen: the NIC reads when it likes."""

    def program(rank: RdmaRank) -> bool:
        count = Count()
        rank.outside[:64] = b"\x11" * 64
        rank.engine.put(1, 0, rank.outside[:64], count, bulk=True)
        rank.outside[:64] = b"\x99" * 64
        rank.wait(lambda: count.puts == 1)
        rank.get(1, 0, rank.outside[:64])
        return bytes(rank.outside[:64]) == b"\x11" * 64

    found = {
        generation: {
            alone(program, generation=generation, seed=s, device={"late": 80}) for s in range(8)
        }
        for generation in NAMES
    }
    assert found["gemini"] == {True}
    assert False in found["aries"]


@BOTH
@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("size", [1, 128, 4097, 8193, 50_000])
def test_a_message_waits_for_its_put(generation: str, keeps: bool, size: int) -> None:
    data = Random(size).randbytes(size)

    def program(rank: RdmaRank) -> int:
        told: list[bytes] = []
        local = rank.outside[:size]
        local[:] = data
        peer = rank.world[1]
        rank.engine.put_then(
            1, 3, local, lambda: told.append(bytes(peer.segment[3 : 3 + size])), keeps_payload=keeps
        )
        if not keeps:
            local[:] = bytes(size)
        rank.wait(lambda: bool(told))
        assert told == [data]
        return len(told)

    for seed in range(2):
        settings = {"mem_consistency": "default", "device": {"late": 70}}
        assert alone(program, generation=generation, seed=seed, **settings) == 1


def test_nothing_is_done_at_once() -> None:
    def program(rank: RdmaRank) -> tuple[int, int, int]:
        count = Count()
        rank.engine.put(1, 0, memoryview(b""), count, bulk=False)
        rank.engine.get(1, 0, memoryview(b""), count)
        return count.puts, count.gets, rank.engine.under_way

    assert alone(program) == (1, 1, 0)
