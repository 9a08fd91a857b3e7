"""Atomics: every operation on every type, and nothing in between.

What an operation gives is what `ompy.frameworks.btl_base.atomics.result_of` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar, Final

import pytest

from ompy.conformance.btl.driver import SECOND, Driver
from ompy.conformance.btl.remote_memory import (
    BLANK,
    EXPOSED,
    TAKEN,
    Mover,
    Transfer,
    expose,
    one_way,
)
from ompy.conformance.btl.suite import Suite, Worlds, requires
from ompy.conformance.payloads import assert_same_bytes
from ompy.frameworks.btl import ACCESS_ANY, NOT_AVAILABLE, REMOTE_ATOMIC, BtlModule
from ompy.frameworks.btl_base.atomics import (
    FORMATS,
    NEEDS,
    WIDTH,
    AtomicOp,
    AtomicOperation,
    AtomicType,
    result_of,
    supported,
)

AT: Final = 512  # bytes; arbitrary: where the word is, with memory around it
TICKETS: Final = 40  # arbitrary: operations of each rank, more than go out at once
SWAPS: Final = 8  # arbitrary: of each rank; each takes some tries


class AtomicSuite(Suite):
    """Modules with the flags ATOMIC_OPS and ATOMIC_FOPS."""

    title: ClassVar[str] = "atomics"
    needs: ClassVar[tuple[str, ...]] = ("atomics",)

    def test_something_is_there(self, worlds: Worlds) -> None:
        """The flags of a module with atomics name an operation at least."""

        def program(driver: Driver) -> None:
            module = _module(driver)
            assert any(module.atomic_flags & need for need in NEEDS.values())

        worlds.make().run(program)

    @pytest.mark.parametrize("kind", AtomicType, ids=lambda kind: kind.name)
    def test_every_operation(self, worlds: Worlds, kind: AtomicType) -> None:
        """What is fetched is the old value, what is there then is the result, and no byte more."""

        def program(driver: Driver) -> None:
            mover, other = expose(driver)
            for op in _supported(_module(driver), kind):
                for old, operand, compare in _cases(op, kind):
                    _set(other, kind, old)
                    local = bytearray(WIDTH[kind])
                    _change(driver, mover, other, op, kind, operand, compare, local)
                    said = f"{op.name} of {old} and {operand}, compared with {compare}"
                    assert _number(kind, local) == old, f"{said}: fetched {_number(kind, local)}"
                    _check(other, kind, result_of(op, kind, old, operand, compare), said)

        one_way(worlds, program)

    @requires("plain atomics")
    @pytest.mark.parametrize("kind", AtomicType, ids=lambda kind: kind.name)
    def test_without_fetching(self, worlds: Worlds, kind: AtomicType) -> None:
        """Once it is completed the word has been changed, though nobody wants the old value."""

        def program(driver: Driver) -> None:
            mover, other = expose(driver)
            for op in _supported(_module(driver), kind):
                for old, operand, compare in list(_cases(op, kind))[:5]:
                    _set(other, kind, old)
                    _change(driver, mover, other, op, kind, operand, compare, None)
                    said = f"{op.name} of {old} and {operand}, compared with {compare}"
                    _check(other, kind, result_of(op, kind, old, operand, compare), said)

        one_way(worlds, program)

    def test_what_is_not_there(self, worlds: Worlds) -> None:
        """What the flags do not have is NOT_AVAILABLE, and nothing is done."""

        def program(driver: Driver) -> None:
            mover, other = expose(driver)
            module = _module(driver)
            for kind in AtomicType:
                for op in set(AtomicOp) - set(_supported(module, kind)):
                    offered = _offer(driver, mover, other.key, op, kind, AT)
                    assert offered.result == NOT_AVAILABLE, f"{op.name}: {offered.result}"
            assert_same_bytes(
                other.exposed,
                bytes([BLANK]) * EXPOSED,
                "an operation that is not there changed the memory",
            )

        one_way(worlds, program)

    def test_nothing_gets_in_between(self, worlds: Worlds, seed: int) -> None:
        """All ranks draw numbers from one counter: each number is drawn once."""
        drawn: list[int] = []

        def program(driver: Driver) -> None:
            movers = _expose_all(driver)
            if driver.rank == 0:
                _set(movers[0], AtomicType.UINT64, 0)
            driver.world.meet(driver)
            if driver.rank:
                if not supported(_module(driver).atomic_flags, AtomicOp.ADD, AtomicType.UINT64):
                    pytest.skip("there is no ADD")
                drawn.extend(_draw(driver, movers[driver.rank], movers[0]))
            driver.world.meet(driver)
            if driver.rank == 0:
                assert sorted(drawn) == list(range(len(drawn))), f"drawn: {sorted(drawn)}"
                _check(movers[0], AtomicType.UINT64, len(drawn), "the counter")
            driver.quiesce()

        worlds.make(3, seed=seed).run(program)

    def test_compare_and_swap(self, worlds: Worlds, seed: int) -> None:
        """Who finds the word as it was a moment ago changes it, and nobody else does."""

        def program(driver: Driver) -> None:
            movers = _expose_all(driver)
            if driver.rank == 0:
                _set(movers[0], AtomicType.INT64, 0)
            driver.world.meet(driver)
            if driver.rank:
                if not supported(_module(driver).atomic_flags, AtomicOp.CSWAP, AtomicType.INT64):
                    pytest.skip("there is no CSWAP")
                for _ in range(SWAPS):
                    _increase(driver, movers[driver.rank], movers[0])
            driver.world.meet(driver)
            if driver.rank == 0:
                _check(movers[0], AtomicType.INT64, 2 * SWAPS, "the sum")
            driver.quiesce()

        worlds.make(3, seed=seed).run(program)

    @pytest.mark.parametrize("how", ["given back", "beyond the end", "no access"])
    def test_other_memory(self, worlds: Worlds, how: str) -> None:
        """Memory that is not registered for it is never changed, and the path is as good after."""

        def program(driver: Driver) -> None:
            mover, other = expose(driver)
            there, _ = driver.world.drivers[driver.peers[0]].rails(driver.rank)[0]
            kind = AtomicType.UINT64
            op = next(iter(_supported(_module(driver), kind)))
            key, at = other.key, AT
            if how == "given back":
                there.deregister_mem(other.handle)
            elif how == "beyond the end":
                at = EXPOSED
            else:
                access = ACCESS_ANY & ~REMOTE_ATOMIC
                key = bytes(there.register_mem(None, memoryview(other.exposed), access))  # type: ignore[call-overload]
            offered = _offer(driver, mover, key, op, kind, at)
            driver.wait(lambda: offered.done, "the end of an atomic that cannot be")
            driver.idle(SECOND // 10)
            assert not offered.good, "it was completed well"
            assert_same_bytes(other.exposed, bytes([BLANK]) * EXPOSED, "the memory was changed")

        one_way(worlds, program)


def _module(driver: Driver) -> BtlModule:
    return driver.rails(driver.peers[0])[0][0]


def _supported(module: BtlModule, kind: AtomicType) -> list[AtomicOp]:
    return [op for op in AtomicOp if supported(module.atomic_flags, op, kind)]


def _number(kind: AtomicType, memory: bytearray) -> int:
    return int(FORMATS[kind].unpack(memory)[0])


def _cases(op: AtomicOp, kind: AtomicType) -> Iterator[tuple[int, int, int]]:
    """Old value, operand, and what it is compared with."""
    bits = 8 * WIDTH[kind]
    if kind in (AtomicType.INT32, AtomicType.INT64):
        edges = [0, 1, -1, 6, -(1 << bits - 1), (1 << bits - 1) - 1]
    else:
        edges = [0, 1, 6, 1 << bits - 1, (1 << bits) - 1]
    for old in edges:
        for operand in edges:
            yield old, operand, 0
            if op is AtomicOp.CSWAP:
                yield old, operand, old


def _set(mover: Mover, kind: AtomicType, value: int) -> None:
    mover.exposed[:] = bytes([BLANK]) * EXPOSED
    FORMATS[kind].pack_into(mover.exposed, AT, value)


def _check(mover: Mover, kind: AtomicType, value: int, said: str) -> None:
    """The word is `value`, and the memory around it is as it was."""
    there = bytearray(mover.exposed[AT : AT + WIDTH[kind]])
    assert _number(kind, there) == value, f"{said}: there is {_number(kind, there)}, not {value}"
    around = mover.exposed[:AT] + mover.exposed[AT + WIDTH[kind] :]
    # a comparison of its own: pytest would take minutes to show how so many bytes differ
    untouched = around == bytes([BLANK]) * len(around)
    assert untouched, f"{said}: memory around the word was changed"


def _offer(
    driver: Driver,
    mover: Mover,
    key: bytes,
    op: AtomicOp,
    kind: AtomicType,
    at: int,
    operand: int = 1,
    compare: int = 0,
    local: bytearray | None = None,
) -> Transfer:
    """One operation on the first peer's memory. Returns accepted or rejected."""
    module, endpoint = driver.rails(driver.peers[0])[0]
    transfer = Transfer(local if local is not None else bytearray())
    view = memoryview(local) if local is not None else None
    handle = module.register_mem(endpoint, view, ACCESS_ANY) if view is not None else None
    operation = AtomicOperation(op, kind, operand, at, key, compare, view, handle)
    with driver.calling("atomic"):
        transfer.result = module.atomic(endpoint, operation, mover, transfer)
    if transfer.result not in TAKEN and transfer.statuses:
        driver.complain("a rejected atomic was completed")
    if handle is not None and transfer.result not in TAKEN:
        module.deregister_mem(handle)
    return transfer


def _change(
    driver: Driver,
    mover: Mover,
    other: Mover,
    op: AtomicOp,
    kind: AtomicType,
    operand: int,
    compare: int,
    local: bytearray | None,
) -> None:
    """Offer it until it is accepted, then wait until it is done."""
    taken: list[Transfer] = []
    offer = partial(_offer, driver, mover, other.key, op, kind, AT, operand, compare, local)

    def accepted() -> bool:
        offered = offer()
        assert offered.result != NOT_AVAILABLE, f"{op.name} is not there, and the flags have it"
        if offered.result in TAKEN:
            taken.append(offered)
        return bool(taken)

    driver.wait(accepted, f"resources for {op.name}")
    driver.wait(lambda: taken[0].done, f"{op.name} to be done")
    assert taken[0].good, f"{op.name} ended with {taken[0].statuses}"


def _expose_all(driver: Driver) -> dict[int, Mover]:
    movers: dict[int, Mover] = driver.world.shared
    movers[driver.rank] = Mover(driver)
    driver.world.meet(driver)
    return movers


def _draw(driver: Driver, mover: Mover, counter: Mover) -> list[int]:
    """Fetch and add one, many times and several at a time; what was fetched."""
    kind = AtomicType.UINT64
    taken: list[Transfer] = []
    for _ in range(TICKETS):
        while True:
            local = bytearray(WIDTH[kind])
            one = _offer(driver, mover, counter.key, AtomicOp.ADD, kind, AT, 1, 0, local)
            if one.result in TAKEN:
                taken.append(one)
                break
            driver.idle(10_000)
    driver.wait(lambda: all(one.done for one in taken), "the completion of all")
    assert all(one.good for one in taken)
    return [_number(kind, one.local) for one in taken]


def _increase(driver: Driver, mover: Mover, other: Mover) -> None:
    """Add one to the word by compare and swap alone."""
    kind = AtomicType.INT64
    expected = 0
    while True:
        local = bytearray(WIDTH[kind])
        swap = AtomicOp.CSWAP
        _change(driver, mover, other, swap, kind, expected + 1, expected, local)
        found = _number(kind, local)
        if found == expected:
            return
        expected = found
