"""What the emulated Gemini and Aries take, by the virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ompy.frameworks.nic.clock import Cost
from ompy.frameworks.nic.gni import AtomicCommand, CqMode, Ordering, PostType, ReturnCode
from ompy.net.virtual.virtual_network import Rail
from ompy_components.nic.gni.timings import TIMINGS

from tests.support.gni_job import SECOND, SIZE, GniRank, gni_world

LOOSE = 200  # ns; polls, and turns of others between them
UNCHOSEN = (Rail("rail0", chosen=False),)
LARGE = 1 << 20
REGISTERED = 20_000  # ns; until then the processor has registered what a rank has


def costs(generation: str) -> dict[str, Cost]:
    """What a generation's work takes, but for the link."""
    return {
        timing.name.removeprefix(f"{generation}_"): timing.takes
        for timing in TIMINGS[generation]
        if isinstance(timing.takes, Cost)
    }


def world(program: Callable[[GniRank], Any], **settings: Any) -> Any:
    """What rank 0's program returns; rank 1 polls."""

    def active(rank: GniRank) -> Any:
        rank.engine.spend(REGISTERED)
        result = program(rank)
        rank.fence()
        return result

    return gni_world([active, GniRank.fence], **settings)[0]


def took(rank: GniRank, *arguments: Any, **more: Any) -> int:
    """Nanoseconds from the post to its event."""
    before = rank.engine.now()
    assert rank.do(1, *arguments, **more) is ReturnCode.SUCCESS
    return rank.engine.now() - before


def is_about(took: int, expected: int) -> bool:
    return took - expected in range(LOOSE)


@pytest.mark.parametrize("generation", ["gemini", "aries"])
def test_what_small_posts_take(generation: str) -> None:
    known = costs(generation)

    def program(rank: GniRank) -> list[int]:
        word = bytearray(8)
        return [
            took(rank, PostType.FMA_PUT, b"12345678", 0),
            took(rank, PostType.FMA_GET, word, 0),
            took(rank, PostType.FETCHING_AMO, word, 0, command=AtomicCommand.ADD),
        ]

    put, get, atomic = world(program, generation=generation)
    way = known["way"].fixed
    assert is_about(put, known["fma_put"].of(8) + way + known["ack"].fixed)
    assert is_about(get, known["fma_get"].of(8) + 2 * way)
    assert is_about(atomic, known["amo"].of(8) + 2 * way + known["atomic"].fixed)


def test_without_a_clock_nothing_takes_time() -> None:
    def program(rank: GniRank) -> int:
        return took(rank, PostType.FMA_PUT, b"12345678", 0)

    assert world(program, clock=False) < LOOSE


def test_its_numbers_are_parameters() -> None:
    def program(rank: GniRank) -> int:
        return took(rank, PostType.FMA_PUT, b"12345678", 0)

    assert is_about(world(program, gemini_way_ns=50_000) - world(program), 50_000 - 510 - 100)


@pytest.mark.parametrize("hosts", [(0, 0), (0, 1)])
@pytest.mark.parametrize("generation", ["gemini", "aries"])
@pytest.mark.parametrize("type_", [PostType.RDMA_PUT, PostType.RDMA_GET])
def test_bytes_pass_once(generation: str, hosts: Any, type_: PostType) -> None:
    """Also between hosts, where they go through NIC and link."""
    known = costs(generation)

    def program(rank: GniRank) -> int:
        local = memoryview(bytearray(LARGE))
        handle = rank.register(local)
        rank.engine.spend(SECOND // 1_000)  # the processor has registered it
        took(rank, PostType.FMA_PUT, b"1", 0)  # and between hosts they are connected
        return took(rank, type_, local, 0, local_handle=handle)

    def first(rank: GniRank) -> int:
        rank.context.wireup.fence()
        rank.handles[1] = peers[0]
        result = program(rank)
        rank.fence()
        return result

    def second(rank: GniRank) -> None:
        rank.memory = memoryview(bytearray(LARGE))
        peers.append(rank.register(rank.memory))
        rank.context.wireup.fence()
        rank.fence()

    peers: list[Any] = []
    ns, _ = gni_world([first, second], generation=generation, hosts=hosts, rails=UNCHOSEN)
    passing = known["bte_put"].of(LARGE)
    assert passing < ns < 1.25 * passing, (ns, passing)


def test_block_transfers_follow_one_another_and_stores_go_beside_them() -> None:
    known = costs("aries")

    def program(rank: GniRank) -> list[int]:
        local = memoryview(bytearray(SIZE))
        handle = rank.register(local)
        rank.engine.spend(REGISTERED)
        before = rank.engine.now()
        kinds = [PostType.RDMA_PUT, PostType.RDMA_PUT, PostType.FMA_PUT]
        posts = [
            rank.post(1, kind, local if kind is PostType.RDMA_PUT else b"1", local_handle=handle)
            for kind in kinds
        ]
        ends = {}
        while len(ends) < len(posts):
            rank.engine.progress()
            for event in rank.events:
                ends.setdefault(event.post, rank.engine.now() - before)
        return [ends[post] for post in posts]

    first, second, store = world(program, generation="aries")
    assert store < first
    assert abs(second - first - known["bte_put"].of(SIZE)) < LOOSE


@pytest.mark.parametrize("ordering", Ordering)
def test_only_strict_ordering_keeps_the_order_of_posts(ordering: Ordering) -> None:
    """A block transfer that was posted before a store comes after it."""
    mode = CqMode.GLOBAL_EVENT | CqMode.REMOTE_EVENT

    def active(rank: GniRank) -> None:
        local = memoryview(bytes([1]) * (SIZE - 8))
        handle = rank.register(local)
        rank.engine.spend(REGISTERED)
        rank.context.wireup.fence()
        posts = [
            rank.post(1, PostType.RDMA_PUT, local, 8, local_handle=handle, cq_mode=mode),
            rank.post(1, PostType.FMA_PUT, b"12345678", 0, cq_mode=mode),
        ]
        for post in posts:
            rank.done(post)
        rank.fence()

    def passive(rank: GniRank) -> tuple[int, int]:
        rank.context.wireup.fence()
        rank.wait(lambda: bool(rank.memory[0]) or bool(rank.memory[8]))
        found = rank.memory[0], rank.memory[8]
        rank.fence()
        return found

    found = gni_world([active, passive], ordering=ordering)[1]
    stored = found[0] == ord("1")
    assert stored is (ordering is not Ordering.STRICT) or found[1] == 1
    assert (found[1] == 1) is (ordering is Ordering.STRICT)


def test_a_registration_and_a_copy_keep_the_processor_busy() -> None:
    known = costs("gemini")

    def program(rank: GniRank) -> list[int]:
        plain = took(rank, PostType.FMA_PUT, b"1", 0)
        handle = rank.register(memoryview(bytearray(LARGE)))
        behind = took(rank, PostType.FMA_PUT, b"1", 0)
        rank.domain.deregister(handle)
        again = took(rank, PostType.FMA_PUT, b"1", 0)
        rank.domain.processor_copies(LARGE)
        return [behind - plain, again - plain, took(rank, PostType.FMA_PUT, b"1", 0) - plain]

    for ns, name in zip(world(program), ("register", "deregister", "copy"), strict=True):
        assert abs(ns - known[name].of(LARGE)) < LOOSE, name


@pytest.mark.parametrize("generation", ["gemini", "aries"])
def test_a_message_and_its_credit_take_time(generation: str) -> None:
    known = costs(generation)
    times: dict[str, int] = {}

    def active(rank: GniRank) -> None:
        endpoint, nothing = rank.endpoints[1], memoryview(b"")
        rank.engine.spend(REGISTERED)
        times["sent"] = rank.engine.now()
        for _ in range(4):
            assert endpoint.smsg_send(memoryview(b"12345678"), nothing) is ReturnCode.SUCCESS
        assert endpoint.smsg_send(nothing, nothing) is ReturnCode.NOT_DONE
        rank.until(lambda: endpoint.smsg_send(nothing, nothing), ReturnCode.NOT_DONE)
        times["credit"] = rank.engine.now()
        rank.fence()

    def passive(rank: GniRank) -> None:
        rank.take(rank.mailbox_queue)
        times["came"] = rank.engine.now()
        assert rank.endpoints[0].smsg_next()[0] is ReturnCode.SUCCESS
        rank.endpoints[0].smsg_release()
        rank.fence()

    gni_world([active, passive], generation=generation)
    way = known["smsg"].of(8) + known["way"].fixed + known["event"].fixed
    assert is_about(times["came"] - times["sent"], way)
    assert times["credit"] - times["came"] >= known["way"].fixed


def test_a_put_lands_while_its_rank_computes() -> None:
    def active(rank: GniRank) -> int:
        rank.post(1, PostType.FMA_PUT, b"12345678", 0)
        rank.engine.spend(SECOND)
        seen = rank.engine.now()
        rank.fence()
        return seen

    def passive(rank: GniRank) -> int:
        while not rank.memory[0]:
            rank.engine.progress()
        seen = rank.engine.now()
        rank.fence()
        return seen

    computed, landed = gni_world([active, passive])
    assert landed < computed - SECOND // 2


def test_the_same_seed_takes_the_same_time() -> None:
    def program(rank: GniRank) -> list[int]:
        return [took(rank, PostType.FMA_PUT, bytes(size), 0) for size in (8, 100, 4_000)]

    assert world(program, seed=3, late=40) == world(program, seed=3, late=40)


def test_without_its_clock_the_nic_takes_no_time_between_hosts_either() -> None:
    """Not that of the fabric below it: what is left is the network, which has none here."""
    nothing = (Rail("rail0", latency=0, jitter=0, bandwidth=10**12, window=2 * LARGE),)

    def program(rank: GniRank) -> int:
        local = memoryview(bytearray(LARGE))
        handle = rank.register(local)
        rank.engine.spend(SECOND // 1_000)
        took(rank, PostType.FMA_PUT, b"1", 0)  # they are connected
        there = room[0]
        more = {"local_handle": handle, "remote_handle": there}
        return took(rank, PostType.RDMA_PUT, local, 0, **more)

    def second(rank: GniRank) -> None:
        room.append(rank.register(memoryview(bytearray(LARGE))))
        rank.fence()

    def first(rank: GniRank) -> int:
        rank.engine.spend(REGISTERED)
        ns = program(rank)
        rank.fence()
        return ns

    room: list[Any] = []
    ns, _ = gni_world([first, second], hosts=(0, 1), rails=nothing, clock=False)
    passing = costs("gemini")["bte_put"].of(LARGE)
    assert ns < passing // 10, (ns, passing)
