"""Who is told of an operation, and when; what a module opens of its domain to be told by."""

from __future__ import annotations

import pytest
from ompy.conformance.btl.remote_memory import Transfer
from ompy.frameworks.btl import QUEUED
from ompy.frameworks.btl_base.atomics import AtomicOp, AtomicOperation, AtomicType
from ompy.frameworks.nic.fabric import Completion
from ompy_components.btl.ofi.work_records import Operation

from tests.support.ofi_worlds import SECOND, Between, Driver, Reading, expose, ofi, world


def test_an_operation_is_told_by_progress() -> None:
    """Never by the call that begins it, however quick the device is."""

    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        if driver.rank == 0:
            mover.move(False, bytearray(8), 0, other.key)  # now there is a connection
            module = ofi(driver)
            for get in (False, True):
                offered = mover.offer(get, bytearray(8), 0, other.key)
                assert offered.result == QUEUED
                assert not offered.done
                assert module.transfers.outstanding == 1
                driver.wait(lambda: offered.done, "its completion")  # noqa: B023
                assert not module.transfers.outstanding
        driver.world.meet(driver)

    world().run(program)


def test_a_transfer_is_no_event_at_its_target() -> None:
    """Its queue gets nothing by puts and gets; they are told at their origin, when done."""
    seen: list[tuple[int, object]] = []

    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()
        driver.world.meet(driver)

        def note(read: Reading, most: int) -> list[Completion]:
            found = read(most)
            seen.extend((driver.rank, done.context) for done in found)
            return found

        between = Between(ofi(driver), note)
        driver.world.meet(driver)
        if driver.rank == 0:
            for number in range(5):
                data = bytearray(driver.data(100))
                assert mover.move(False, data, 0, other.key).good
                assert other.exposed[:100] == data, "its completion came before its bytes"
                assert mover.move(True, bytearray(100), number, other.key).good
            driver.idle(SECOND // 100)
        driver.world.meet(driver)
        between.undo()

    world().run(program)
    assert {rank for rank, _ in seen} == {0}
    assert sum(isinstance(context, Operation) for _, context in seen) == 10


@pytest.mark.parametrize(
    ("settings", "scalable"),
    [
        ({}, True),
        ({"disable_sep": 1}, False),
        ({"nic_tx_contexts": 1}, False),
    ],
    ids=["by itself", "switched off", "the provider has none"],
)
def test_one_endpoint_and_one_queue(settings: dict[str, object], scalable: bool) -> None:
    """One context of a scalable endpoint, or an endpoint that sends and receives."""

    def program(driver: Driver) -> tuple[int, int, bool]:
        mover, other = expose(driver)
        driver.send(1 - driver.rank, driver.data(3000))
        assert mover.move(False, bytearray(100), 0, other.key).good
        driver.quiesce()
        driver.check_inbox(ordered=False)
        contexts = ofi(driver).contexts
        driver.world.meet(driver)
        return len(contexts), len(contexts.queues), contexts.scalable

    assert world(**settings).run(program) == [(1, 1, scalable)] * 2  # type: ignore[arg-type]


def test_words_of_atomics_are_not_registered() -> None:
    """Operand, compare and the old value lie in memory the device knows nothing of."""

    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        if driver.rank == 0:
            mover.move(False, bytearray(8), 0, other.key)
            module, endpoint = driver.rails(1)[0]
            registered: list[int] = []
            domain = ofi(driver).domain
            register = domain.register
            domain.register = (  # type: ignore[method-assign]
                lambda memory, access, key: registered.append(key) or register(memory, access, key)  # type: ignore[func-returns-value]
            )
            for op in (AtomicOp.ADD, AtomicOp.CSWAP):
                for local in (None, bytearray(8)):
                    view = memoryview(local) if local is not None else None
                    asked = AtomicOperation(op, AtomicType.UINT64, 3, 0, other.key, 0, view)
                    made = Transfer(bytearray())
                    made.result = module.atomic(endpoint, asked, mover, made)
                    driver.wait(lambda: made.done, "the atomic")  # noqa: B023
                    assert made.good
            assert registered == []
        driver.world.meet(driver)

    world().run(program)
