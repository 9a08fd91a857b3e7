"""What is known to be wrong with the original (reference ofi.md A0, A5 to A7) is not wrong here."""

from __future__ import annotations

import errno
from functools import partial

import pytest
from ompy.conformance.btl.remote_memory import TAKEN, Mover, Transfer
from ompy.frameworks.btl import (
    COMPLETED,
    NO_ORDER,
    OUT_OF_RESOURCE,
    PUT,
    QUEUED,
    RDMA_COMPLETION,
    UNREACHABLE,
)
from ompy.frameworks.btl_base.atomics import AtomicOp, AtomicOperation, AtomicType, supported
from ompy_components.btl.ofi.contexts import READ_MAX
from ompy_components.btl.ofi.work_records import OfiFragment

from tests.support.ofi_worlds import SECOND, Between, Driver, Hand, expose, ofi, world


def test_a0_1_the_default_finds_a_provider() -> None:
    """The stock exclude list leaves nothing on an ordinary host; the default has to."""
    providers = world().run(lambda driver: ofi(driver).info.provider)
    assert providers == ["emulated", "emulated"]


def test_a0_2_registration_bound_to_an_endpoint_is_refused_as_the_seed_says() -> None:
    reasons = world(nic_providers="emulated;endpoint").run(lambda driver: driver.unavailable)
    assert all("no provider" in reason for reason in reasons)


@pytest.mark.parametrize("how", ["ignored", "unsupported"])
def test_a0_5_delivery_complete_is_checked(how: str) -> None:
    """Written with bitwise OR the check passes everybody. Who does not honour it has no put."""

    def program(driver: Driver) -> int:
        return ofi(driver).flags & (PUT | RDMA_COMPLETION)

    assert world(nic_delivery_complete=how).run(program) == [0, 0]
    assert world().run(program) == [PUT | RDMA_COMPLETION] * 2


def test_a0_6_every_call_of_progress_progresses() -> None:
    """There the first of two calls only takes the lock."""

    def program(driver: Driver) -> None:
        if driver.rank == 0:
            driver.send(1, driver.data(100))
            driver.quiesce()
            return
        module = ofi(driver)
        driver.wait(lambda: bool(module.endpoints), "the first fragment")
        driver.quiesce()
        assert len(driver.inbox) == 1
        reads: list[int] = []
        Between(module, lambda read, most: reads.append(most) or read(most))  # type: ignore[func-returns-value]
        with driver.calling("poll"):
            module.poll()
            module.poll()
        assert len(reads) == 2, "one poll has not read the queue"

    world().run(program)


def test_a0_7_all_atomics_are_promised() -> None:
    flags = world().run(lambda driver: ofi(driver).atomic_flags)[0]
    assert all(supported(flags, op, kind) for op in AtomicOp for kind in AtomicType)


def test_a0_9_the_same_endpoint_every_time() -> None:
    """There a second add_procs returns the address of a variable that is gone."""

    def program(driver: Driver) -> None:
        module = ofi(driver)
        procs = driver.context.procs
        first = driver.add_procs(module, procs)
        assert driver.add_procs(module, procs) == first
        assert [made is None for made in first] == [rank == driver.rank for rank in range(3)]

    world(3).run(program)


@pytest.mark.parametrize("number", [errno.ENODEV, errno.ENOMEM, 268], ids=str)
def test_a0_10_an_error_nobody_expects_ends_no_process(number: int) -> None:
    """There it is printed, and exit(1) called. 268 is FI_EOVERRUN."""

    def program(driver: Driver) -> None:
        driver.rails(1 - driver.rank)
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()
        if driver.rank == 0:
            hand = Hand(ofi(driver), OfiFragment, {})
            hand.lost = number
            driver.wait(lambda: bool(driver.errors), "the error callback")
            assert hand.delivered
            assert driver.errors[0].rank == 1
            offered = driver.post(1, driver.data(10))
            assert offered is not None
            assert offered.result == UNREACHABLE

    world().run(program)


def test_a5_an_operation_counts_before_it_is_posted() -> None:
    """So a flush cannot miss it: what is posted is counted while the device is asked."""
    seen: list[tuple[int, int]] = []

    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        if driver.rank == 0:
            module = ofi(driver)
            mover.move(False, bytearray(8), 0, other.key)
            write = module.contexts.first.write

            def spy(*arguments: object) -> bool:
                endpoint = module.endpoints[1]
                seen.append((module.transfers.outstanding, len(endpoint.operations)))
                return write(*arguments)  # type: ignore[arg-type]

            module.contexts.first.write = spy  # type: ignore[method-assign]
            mover.move(False, bytearray(8), 0, other.key)
        driver.world.meet(driver)

    world().run(program)
    assert seen == [(1, 1)]


def test_a5_flush_waits_for_its_endpoint_only() -> None:
    begun: list[bool] = []

    def program(driver: Driver) -> None:
        mover, _ = expose(driver)
        if driver.rank == 0:
            module = ofi(driver)
            keys = {rank: driver.world.shared[rank].key for rank in (1, 2)}
            for rank in (1, 2):
                _put(driver, rank, keys[rank], mover)
                module.flush(None)
            begun.append(True)
            driver.wait(lambda: len(begun) == 2, "rank 2 to compute")
            slow = _put(driver, 2, keys[2], mover)
            quick = _put(driver, 1, keys[1], mover)
            module.flush(module.endpoints[1])
            assert quick.done
            before = slow.done
            module.flush(None)
            assert slow.done
            assert not before, "rank 2 computes: its put cannot have been done"
        elif driver.rank == 2:
            driver.wait(lambda: bool(begun), "the begin")
            begun.append(True)
            driver.compute(SECOND)
        driver.world.meet(driver)

    world(3).run(program)


def _put(driver: Driver, rank: int, key: bytes, mover: Mover) -> Transfer:
    module, endpoint = driver.rails(rank)[0]
    local = bytearray(64)
    made = Transfer(local)

    def offer() -> bool:
        made.result = module.put(
            endpoint, memoryview(local), 0, None, key, 0, NO_ORDER, mover, made
        )
        return made.result in TAKEN

    driver.wait(offer, "a put to be taken")
    return made


def test_a5_numbers_have_a_sign() -> None:
    """There MIN and MAX compare as if -1 were the largest number."""

    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        if driver.rank == 0:
            other.exposed[:8] = (5).to_bytes(8, "little")
            module, endpoint = driver.rails(1)[0]
            asked = AtomicOperation(AtomicOp.MIN, AtomicType.INT64, -3, 0, other.key)
            made = Transfer(bytearray())

            def offer() -> bool:
                made.result = module.atomic(endpoint, asked, mover, made)
                return made.result in TAKEN

            driver.wait(offer, "an atomic to be taken")
            driver.wait(lambda: made.done, "the atomic")
            assert int.from_bytes(other.exposed[:8], "little", signed=True) == -3
        driver.world.meet(driver)

    world().run(program)


def test_a1_completions_read_at_a_time_are_bounded() -> None:
    """There num_cq_read may be larger than the array it is read into."""
    asked: list[int] = []

    def program(driver: Driver) -> None:
        module = ofi(driver)
        Between(module, lambda read, most: asked.append(most) or read(most))  # type: ignore[func-returns-value]
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()

    world(num_cq_read=100_000).run(program)
    assert set(asked) == {READ_MAX}


@pytest.mark.parametrize("inject", [0, 4096])
def test_a7_what_is_refused_leaves_nothing_behind(inject: int) -> None:
    """There a send that finds no room loses its completion record."""
    refused: list[int] = []

    def program(driver: Driver) -> None:
        module = ofi(driver)
        peer = 1 - driver.rank
        for _ in range(40):
            made = module.alloc(driver.rails(peer)[0][1], NO_ORDER, 100, 0)
            assert made is not None
            result = module.send(driver.rails(peer)[0][1], made, 0x40)
            endpoint = module.endpoints[peer]
            if result == OUT_OF_RESOURCE:
                refused.append(1)
                assert module.sending.outstanding == len(endpoint.posted)
                assert isinstance(made, OfiFragment)
                assert not made.posted
                assert made.endpoint is None
                assert endpoint.window.sent == endpoint.window.acknowledged
                module.free(made)
                driver.idle(10_000)
            else:
                driver.world.accepted[peer] += 1
                driver.wait(lambda: not endpoint.posted, "its completion")  # noqa: B023
                break
        driver.quiesce()
        assert not module.sending.outstanding

    world(nic_inject_size=inject).run(program)
    assert refused, "the provider connects first: the first sends find no room"


def test_a7_the_sender_is_known() -> None:
    """There a fragment comes with no endpoint."""

    def program(driver: Driver) -> None:
        for rank in driver.peers:
            driver.send(rank, driver.data(50))
        driver.quiesce()
        assert {arrival.source for arrival in driver.inbox} == set(driver.peers)

    world(3).run(program)


def test_a7_a_slow_receiver_is_not_overrun() -> None:
    """There more messages than posted buffers are the provider's trouble."""

    def program(driver: Driver) -> None:
        if driver.rank == 1:
            driver.rails(0)
            driver.send(0, driver.data(1))
            driver.compute(SECOND // 50)
        else:
            driver.wait(lambda: bool(driver.inbox), "that the peer is there")
            driver.wait(partial(_taken, driver), "a fragment to be taken", 2 * SECOND)
            count = 1
            while (offered := driver.post(1, driver.data(200))) is not None:
                assert offered.result in (QUEUED, COMPLETED)
                count += 1
                assert count <= 4, "more was taken than there are buffers"
        driver.quiesce()
        driver.check_inbox(ordered=False)

    world(rd_num=4).run(program)


def _taken(driver: Driver) -> bool:
    return driver.post(1, driver.data(200)) is not None


def test_shutdown_without_a_sleep() -> None:
    """There a second is slept before everything is closed. What was posted last is delivered."""

    def program(driver: Driver) -> int:
        driver.send(1 - driver.rank, driver.data(3000))
        begun = driver.engine.now()
        driver.finalize()
        assert len(driver.inbox) == 1, "it has gone before everything had arrived"
        return driver.engine.now() - begun

    assert max(world().run(program)) < SECOND // 10


def test_nothing_of_an_operation_stays() -> None:
    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        if driver.rank == 0:
            for get in (False, True):
                mover.move(get, bytearray(100), 0, other.key)
            module = ofi(driver)
            assert not module.transfers.outstanding
            assert not module.endpoints[1].operations
        driver.world.meet(driver)

    world().run(program)
