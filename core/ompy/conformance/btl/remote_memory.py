"""Remote memory: put and get, to the byte."""

from __future__ import annotations

from typing import ClassVar, Final

import pytest

from ompy.conformance.btl.btl_worlds import Program
from ompy.conformance.btl.driver import SECOND, WAIT, Driver
from ompy.conformance.btl.suite import Suite, Worlds, requires
from ompy.conformance.payloads import assert_same_bytes
from ompy.frameworks.btl import (
    ACCESS_ANY,
    COMPLETED,
    IN_ORDER,
    NO_ORDER,
    QUEUED,
    RDMA_COMPLETION,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)

EXPOSED: Final = 1 << 17  # bytes of each rank; arbitrary: more than the limits of most BTLs
GUARD: Final = 512  # bytes around what is moved; arbitrary
BLANK: Final = 0x5A  # arbitrary: what memory holds before
TAKEN: Final = (QUEUED, COMPLETED)
MANY: Final = 100  # arbitrary: more than a work queue holds


class Transfer:
    """One put or get.

    Attributes:
        local: the memory it moves from or to.
        result: of the call; None while that runs.
        statuses: of its completions.
    """

    def __init__(self, local: bytearray) -> None:
        self.local = local
        self.result: int | None = None
        self.statuses: list[int] = []

    @property
    def done(self) -> bool:
        """Whether it is over, well or badly."""
        return self.result not in (None, QUEUED) or bool(self.statuses)

    @property
    def good(self) -> bool:
        """Whether the bytes have been moved."""
        return self.result == COMPLETED or self.statuses == [0]


class Mover(CompletionCallback):
    """One rank's puts and gets.

    Attributes:
        exposed: memory of this rank that its peers may use.
        handle: of it, as the module has it.
        key: bytes of it for the peers.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        module, endpoint = driver.rails(driver.peers[0])[0]
        self.exposed = bytearray([BLANK]) * EXPOSED
        self.handle = module.register_mem(endpoint, memoryview(self.exposed), ACCESS_ANY)
        self.key = bytes(self.handle)  # type: ignore[call-overload]
        if len(self.key) != module.registration_handle_size:
            driver.complain(
                f"a handle has {len(self.key)} bytes, registration_handle_size is "
                f"{module.registration_handle_size}"
            )

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """Note a completion."""
        transfer = descriptor.context
        if not isinstance(transfer, Transfer):
            self._driver.complain(f"a transfer was completed with the context {transfer!r}")
            return
        if transfer.statuses or transfer.result == COMPLETED:
            self._driver.complain("a transfer was completed twice")
        if self._driver.finalized:
            self._driver.complain("a transfer was completed after finalize had returned")
        transfer.statuses.append(status)

    def offer(
        self, get: bool, local: bytearray, address: int, key: bytes, flags: int = 0
    ) -> Transfer:
        """Put `local` to, or get it from, the first peer. Returns accepted or rejected."""
        driver = self._driver
        module, endpoint = driver.rails(driver.peers[0])[0]
        transfer = Transfer(local)
        handle = module.register_mem(endpoint, memoryview(local), ACCESS_ANY)
        move = module.get if get else module.put
        with driver.calling("get" if get else "put"):
            transfer.result = move(
                endpoint, memoryview(local), address, handle, key, flags, NO_ORDER, self, transfer
            )
        if transfer.result not in TAKEN and transfer.statuses:
            driver.complain("a rejected transfer was completed")
        return transfer

    def move(
        self, get: bool, local: bytearray, address: int, key: bytes, flags: int = 0
    ) -> Transfer:
        """Offer until it is accepted, then wait until it is done."""
        taken: list[Transfer] = []

        def accepted() -> bool:
            offered = self.offer(get, local, address, key, flags)
            if offered.result in TAKEN:
                taken.append(offered)
            return bool(taken)

        self._driver.wait(accepted, f"resources to move {len(local)} bytes")
        self._driver.wait(lambda: taken[0].done, f"{len(local)} bytes to be moved", WAIT)
        return taken[0]


class RemoteMemorySuite(Suite):
    """Modules with the flags `PUT` and `GET`."""

    title: ClassVar[str] = "remote memory"

    @requires("put")
    @pytest.mark.parametrize("flags", [0, IN_ORDER], ids=["plain", "in order"])
    def test_put(self, worlds: Worlds, flags: int) -> None:
        """Exactly the bytes meant are written, before what is sent afterwards arrives."""

        def program(driver: Driver) -> None:
            mover, other = expose(driver)
            expected = bytearray(other.exposed)
            module, _ = driver.rails(driver.peers[0])[0]
            for number, size in enumerate(_sizes(module.put_limit, module.put_alignment)):
                address = GUARD + number * 8 * module.put_alignment
                data = driver.data(size)
                expected[address : address + size] = data
                local = bytearray(data)
                moved = mover.move(False, local, address, other.key, flags)
                assert moved.good, f"put of {size} bytes"
                assert_same_bytes(local, data, "the source of a put was altered")
                local[:] = bytes([BLANK]) * size  # it is the user's again
                if module.flags & RDMA_COMPLETION and not flags:
                    assert_same_bytes(other.exposed, expected, f"after a put of {size} bytes")
                _send_and_see_arrive(driver)
                assert_same_bytes(other.exposed, expected, f"after a put of {size} bytes")

        one_way(worlds, program)

    @requires("get")
    def test_get(self, worlds: Worlds) -> None:
        """Exactly the bytes meant are read, and nothing around them is touched."""

        def program(driver: Driver) -> None:
            mover, other = expose(driver)
            other.exposed[:] = driver.data(EXPOSED)
            before = bytes(other.exposed)
            module, _ = driver.rails(driver.peers[0])[0]
            for number, size in enumerate(_sizes(module.get_limit, module.get_alignment)):
                address = GUARD + number * 8 * module.get_alignment
                local = bytearray([BLANK]) * size
                assert mover.move(True, local, address, other.key).good, f"get of {size} bytes"
                assert local == before[address : address + size], f"get of {size} bytes"
            assert other.exposed == before, "a get altered what it read"

        one_way(worlds, program)

    @requires("get")
    def test_get_now(self, worlds: Worlds) -> None:
        """A get that is done at once reads what `get` reads; where it is not, `get` does it."""

        def program(driver: Driver) -> None:
            mover, other = expose(driver)
            other.exposed[:] = driver.data(EXPOSED)
            module, endpoint = driver.rails(driver.peers[0])[0]
            for number, size in enumerate(_sizes(module.get_limit, module.get_alignment)):
                address = GUARD + number * 8 * module.get_alignment
                expected = other.exposed[address : address + size]
                around = memoryview(bytearray([BLANK]) * (size + 2 * GUARD))
                local = around[GUARD : GUARD + size]
                if module.get_now(endpoint, local, address, other.key) == COMPLETED:
                    assert local == expected, f"get of {size} bytes at once"
                    assert set(around[:GUARD]) | set(around[GUARD + size :]) == {BLANK}
                assert mover.move(True, bytearray(size), address, other.key).good
            local = memoryview(bytearray(8))
            for where in (EXPOSED - 4, EXPOSED):
                found = module.get_now(endpoint, local, where, other.key)
                assert found != COMPLETED, "bytes that are not exposed were read"
            nothing = bytes(len(other.key))
            assert module.get_now(endpoint, local, 0, nothing) != COMPLETED, "there is no such key"

        one_way(worlds, program)

    @requires("put")
    def test_many_puts(self, worlds: Worlds, seed: int) -> None:
        """Many at a time: each is completed once, and all are there."""
        _many(worlds, seed, get=False)

    @requires("get")
    def test_many_gets(self, worlds: Worlds, seed: int) -> None:
        """Many at a time: each is completed once, with its own bytes."""
        _many(worlds, seed, get=True)

    @requires("put")
    def test_put_over_the_limit(self, worlds: Worlds) -> None:
        """More than `put_limit` is rejected, and nothing is written."""
        _over(worlds, get=False)

    @requires("get")
    def test_get_over_the_limit(self, worlds: Worlds) -> None:
        """More than `get_limit` is rejected, and nothing is written."""
        _over(worlds, get=True)

    @requires("put")
    @pytest.mark.parametrize("how", ["given back", "beyond the end"])
    def test_put_into_other_memory(self, worlds: Worlds, how: str) -> None:
        """Memory that is not registered, or not any more, is never written."""

        def program(driver: Driver) -> None:
            mover, other = expose(driver)
            module, _ = driver.rails(driver.peers[0])[0]
            size = min(module.put_limit, 64 * module.put_alignment)
            address = 0
            if how == "given back":
                there, _ = driver.world.drivers[driver.peers[0]].rails(driver.rank)[0]
                there.deregister_mem(other.handle)
            else:
                address = EXPOSED - module.put_alignment
            offered = mover.offer(False, bytearray(size), address, other.key)
            driver.wait(lambda: offered.done, "the end of a put that cannot be")
            driver.idle(SECOND // 10)
            assert not offered.good, "it was completed well"
            assert_same_bytes(other.exposed, bytes([BLANK]) * EXPOSED, "it was written")

        one_way(worlds, program)


def expose(driver: Driver) -> tuple[Mover, Mover]:
    """This rank's mover and its first peer's."""
    movers: dict[int, Mover] = driver.world.shared
    movers[driver.rank] = Mover(driver)
    driver.world.meet(driver)
    return movers[driver.rank], movers[driver.peers[0]]


def one_way(worlds: Worlds, program: Program, seed: int = 0) -> None:
    """Rank 0 moves, rank 1 lets it."""

    def each(driver: Driver) -> None:
        if driver.rank == 0:
            program(driver)
        else:
            expose(driver)
        driver.world.meet(driver)
        driver.quiesce()

    worlds.make(seed=seed).run(each)


def _send_and_see_arrive(driver: Driver) -> None:
    """One fragment to the first peer; returns when it has been delivered there."""
    there = driver.world.drivers[driver.peers[0]]
    arrived = len(there.inbox)
    driver.send(driver.peers[0], driver.data(20))
    driver.wait(lambda: len(there.inbox) > arrived, "a fragment")


def _sizes(limit: int, alignment: int) -> list[int]:
    """Aligned sizes up to a limit, powers of two and their neighbours among them."""
    most = min(limit, EXPOSED // 2)
    edges = {most, 1} | {1 << power for power in range(most.bit_length())}
    around = {(edge + step) // alignment * alignment for edge in edges for step in (-1, 0, 1)}
    return sorted(size for size in around if 0 < size <= most)


def _many(worlds: Worlds, seed: int, *, get: bool) -> None:
    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        module, _ = driver.rails(driver.peers[0])[0]
        alignment = module.get_alignment if get else module.put_alignment
        size = min(module.get_limit if get else module.put_limit, 32 * alignment)
        expected = bytearray(driver.data(MANY * size))
        if get:
            other.exposed[: len(expected)] = expected
        taken: list[Transfer] = []
        for address in range(0, MANY * size, size):
            local = bytearray(size) if get else expected[address : address + size]
            while (offered := mover.offer(get, local, address, other.key)).result not in TAKEN:
                driver.idle(10_000)
            taken.append(offered)
        driver.wait(lambda: all(one.done for one in taken), "the completion of all")
        assert all(one.good for one in taken)
        assert_same_bytes(b"".join(one.local for one in taken), expected, "at the own side")
        _send_and_see_arrive(driver)
        assert_same_bytes(other.exposed[: len(expected)], expected, "at the peer's side")

    one_way(worlds, program, seed)


def _over(worlds: Worlds, *, get: bool) -> None:
    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        module, _ = driver.rails(driver.peers[0])[0]
        limit = module.get_limit if get else module.put_limit
        if limit >= EXPOSED:
            pytest.skip("the limit is larger than the memory of this test")
        local = bytearray(limit + 1)
        offered = mover.offer(get, local, 0, other.key)
        assert offered.result is not None
        assert offered.result < 0, f"{limit + 1} bytes got the result {offered.result}"
        driver.idle(SECOND // 10)
        assert not offered.statuses
        assert not any(local)
        assert_same_bytes(
            other.exposed, bytes([BLANK]) * EXPOSED, f"a transfer of {limit + 1} bytes was refused"
        )

    one_way(worlds, program)
