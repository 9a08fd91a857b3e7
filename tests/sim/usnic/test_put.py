"""usnic's put over wires that lose, and the end of its path."""

from __future__ import annotations

from typing import ClassVar

import pytest
from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.remote_memory import Mover
from ompy.frameworks.btl import (
    BAD_PARAM,
    NO_ORDER,
    NOT_AVAILABLE,
    QUEUED,
    UNREACHABLE,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)

from tests.sim.usnic.test_module import MS, SECOND, lossy, usnic, world
from tests.support.effort import effort

BLANK = 0x5A  # what memory holds before


def movers(driver: Driver) -> tuple[Mover, Mover]:
    driver.world.shared[driver.rank] = Mover(driver)
    driver.world.meet(driver)
    return driver.world.shared[driver.rank], driver.world.shared[driver.peers[0]]


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(effort(1)))
def test_every_byte_once_and_in_its_place(rate: float, seed: int) -> None:
    """Both sides put at once, between fragments; each put is complete when it is there."""

    def program(driver: Driver) -> None:
        mine, theirs = movers(driver)
        random = driver.engine.random
        expected = bytearray(theirs.exposed)
        at, begun = 0, []
        while at < len(expected) - 20_000:
            data = driver.data(random.choice((1, 1415, 1416, 1417, random.randrange(1, 20_000))))
            begun.append(mine.offer(False, bytearray(data), at, theirs.key))
            expected[at : at + len(data)] = data
            at += len(data) + random.randrange(3)
            driver.send(driver.peers[0], driver.data(random.randrange(3000)))
        for transfer in begun:
            driver.wait(lambda done=transfer: done.done, "a put")  # type: ignore[misc]
            assert transfer.good
        assert theirs.exposed == expected
        driver.quiesce()
        driver.check_inbox(ordered=False)
        module = usnic(driver)
        (endpoint,) = module.endpoints.values()
        assert not endpoint.landings
        assert not endpoint.asked
        assert module.statistics.num_resends or not rate

    world(seed=seed, plan=lossy(rate) if rate else lambda _: ()).run(program)


def test_the_user_resizes_what_was_put() -> None:
    """A put that is complete holds nothing of his memory, acknowledged or not."""

    class Done(CompletionCallback):
        statuses: ClassVar[list[int]] = []

        def completed(
            self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
        ) -> None:
            self.statuses.append(status)

    def program(driver: Driver) -> None:
        _, theirs = movers(driver)
        module, endpoint = driver.rails(driver.peers[0])[0]
        if driver.rank == 0:
            local, done = bytearray(b"all of it" * 2000), Done()
            key = bytes(theirs.key)
            assert module.put(
                endpoint, memoryview(local), 0, None, key, 0, NO_ORDER, done, None
            ) == QUEUED  # fmt: skip
            driver.wait(lambda: bool(done.statuses), "the put")
            local.extend(b"and more")
            assert done.statuses == [0]
            assert theirs.exposed[:18_000] == local[:18_000]
        driver.world.meet(driver)

    world().run(program)


def test_what_is_refused_touches_nothing_and_costs_no_path() -> None:
    def program(driver: Driver) -> None:
        mine, theirs = movers(driver)
        if driver.rank == 0:
            size = len(theirs.exposed)
            forged = theirs.key[:-8] + (99).to_bytes(8, "little")
            refused = [
                mine.offer(False, bytearray(5000), size - 4999, theirs.key),  # its last byte
                mine.offer(False, bytearray(10), 1 << 31, theirs.key),
                mine.offer(False, bytearray(3000), 0, forged),
            ]
            for transfer in refused:
                driver.wait(lambda done=transfer: done.done, "a refusal")  # type: ignore[misc]
                assert transfer.statuses == [BAD_PARAM]
            assert mine.offer(False, bytearray(10), 0, mine.key).result == BAD_PARAM
            assert mine.offer(False, bytearray(10), 0, b"short").result == BAD_PARAM
            assert mine.offer(False, bytearray(10), 1 << 32, theirs.key).result == NOT_AVAILABLE
            inside = bytes(theirs.exposed[: size - 4999])
            assert inside == bytes([BLANK]) * len(inside)
            assert mine.move(False, bytearray(b"good"), 7, theirs.key).good
            assert theirs.exposed[7:11] == b"good"
            assert not driver.errors
        driver.quiesce()

    world().run(program)


def test_memory_given_back_in_the_middle_of_a_put() -> None:
    """What comes from then on has no place; the put ends badly and the path goes on."""

    def program(driver: Driver) -> None:
        mine, theirs = movers(driver)
        if driver.rank == 0:
            transfer = mine.offer(False, bytearray(100_000), 0, theirs.key)
            driver.wait(lambda: transfer.done, "the end")
            assert transfer.statuses == [BAD_PARAM]
        else:
            module = usnic(driver)
            driver.wait(lambda: bool(module.endpoints[0].landings), "the first bytes")
            module.deregister_mem(mine.handle)
            before = bytes(mine.exposed)
            assert 0 < before.count(0) < 100_000
            driver.idle(500 * MS)
            assert mine.exposed == before
        driver.quiesce()

    world().run(program)


def test_a_put_to_a_rank_that_is_killed() -> None:
    def program(driver: Driver) -> None:
        mine, theirs = movers(driver)
        if driver.rank == 1:
            driver.vanish()
            driver.world.departs(1, "it was killed")
            return
        transfer = mine.offer(False, bytearray(100_000), 0, theirs.key)
        assert transfer.result == QUEUED
        driver.wait(lambda: transfer.done, "the end", 10 * SECOND)
        assert transfer.statuses == [UNREACHABLE]
        assert mine.offer(False, bytearray(1), 0, theirs.key).result == UNREACHABLE

    world().run(program)
