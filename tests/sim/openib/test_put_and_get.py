"""Puts and gets: what the peer's adapter refuses is no fault of the path."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.conformance.btl.driver import SECOND, Driver
from ompy.frameworks.btl import ACCESS_ANY, BAD_PARAM, NO_ORDER, QUEUED, REMOTE_READ

from tests.support.effort import effort
from tests.support.openib_worlds import Errors, Transfers, openib, world

SIZE = 9000  # several packets


def move(
    driver: Driver, mine: Transfers, kind: str, key: bytes, local: bytearray, at: int = 0
) -> int:
    module, endpoint = driver.rails(driver.peers[0])[0]
    handle = module.register_mem(endpoint, memoryview(local), ACCESS_ANY)
    call: Any = module.put if kind == "put" else module.get
    result: int = call(
        endpoint, memoryview(local), at, handle, key, 0, NO_ORDER, mine, (kind, local)
    )
    mine.open += result == QUEUED
    return result


@pytest.mark.parametrize("seed", range(effort(3)))
@pytest.mark.parametrize("kind", ["put", "get"])
@pytest.mark.parametrize("both", [False, True], ids=["one end", "both ends at once"])
def test_memory_that_was_given_back(seed: int, kind: str, both: bool) -> None:
    """It ends with BAD_PARAM; those around it are done, and so is all that is sent meanwhile."""

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        mine = driver.world.shared[driver.rank] = Transfers(driver, SIZE)
        module, endpoint = driver.rails(driver.peers[0])[0]
        stale = bytearray(driver.data(SIZE))
        kept = bytes(stale)
        handle = module.register_mem(endpoint, memoryview(stale), ACCESS_ANY)
        driver.world.shared[driver.rank + 10] = bytes(handle)  # type: ignore[call-overload]
        module.deregister_mem(handle)
        driver.world.meet(driver)
        (peer,) = driver.peers
        there: Transfers = driver.world.shared[peer]
        good = bytes(there.handle)  # type: ignore[call-overload]
        rounds = 3 if both or driver.rank == 0 else 0
        locals_ = []
        for _ in range(rounds):
            for key in (good, good, driver.world.shared[peer + 10], good):
                locals_.append(bytearray(driver.data(SIZE)))
                assert move(driver, mine, kind, key, locals_[-1]) == QUEUED
                driver.post(peer, driver.data(300))
        written = [bytes(local) for local in locals_]
        driver.wait(lambda: not mine.open, "puts and gets", 5 * SECOND)
        statuses = [(local, status) for _, status, local in mine.statuses]
        assert len(statuses) == 4 * rounds
        for index, local in enumerate(locals_):
            (status,) = [said for moved, said in statuses if moved is local]
            assert status == (BAD_PARAM if index % 4 == 2 else 0)
            if kind == "get" and index % 4 == 2:
                assert bytes(local) == written[index], "a refused get has touched its memory"
        driver.world.meet(driver)
        mine.written = written
        driver.world.meet(driver)
        if kind == "put" and there.written:
            assert bytes(mine.memory) == there.written[-1], "the last put was good"
        assert bytes(stale) == kept
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not errors.told
        if rounds:
            assert openib(driver).counters()["queue_renewals"] >= 1

    world(seed=seed).run(program)


@pytest.mark.parametrize("kind", ["put", "get"])
def test_what_a_handle_does_not_allow(kind: str) -> None:
    """Bytes outside of it, access it does not give, and handles that are none: at once."""

    def program(driver: Driver) -> None:
        mine = driver.world.shared[driver.rank] = Transfers(driver, SIZE)
        module, endpoint = driver.rails(driver.peers[0])[0]
        only_read = module.register_mem(endpoint, memoryview(bytes(SIZE)), REMOTE_READ)
        driver.world.shared[driver.rank + 10] = bytes(only_read)  # type: ignore[call-overload]
        driver.world.meet(driver)
        (peer,) = driver.peers
        key = bytes(driver.world.shared[peer].handle)
        local = bytearray(100)
        for wrong, at in (
            (key, SIZE - 99),
            (key, (1 << 64) - 1),
            (key[:-1], 0),
            (bytes(len(key)), 0),
            (bytes(mine.handle), 0),  # type: ignore[call-overload]
        ):
            assert move(driver, mine, kind, wrong, local, at) == BAD_PARAM
        expected = QUEUED if kind == "get" else BAD_PARAM
        assert move(driver, mine, kind, driver.world.shared[peer + 10], local) == expected
        driver.wait(lambda: not mine.open, "the get that may be")
        driver.world.meet(driver)
        driver.quiesce()
        assert not driver.errors

    world().run(program)
