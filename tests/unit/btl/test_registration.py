"""Registered memory: what a handle names, what a peer may have, what the cache keeps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.data.errors import MPIError
from ompy.frameworks.btl import (
    ACCESS_ANY,
    LOCAL_WRITE,
    REMOTE_READ,
    REMOTE_WRITE,
    BtlModule,
    Endpoint,
)
from ompy.frameworks.btl_base.registration import (
    HANDLE_SIZE,
    RegistrationCache,
    RegistrationTable,
    identity_of,
)


def test_a_handle_names_one_registration_of_one_rank() -> None:
    table = RegistrationTable(3)
    one, two = (table.register_memory(memoryview(bytearray(8)), ACCESS_ANY) for _ in range(2))
    assert len(bytes(one)) == HANDLE_SIZE
    assert identity_of(bytes(one), 3) == one.identity != two.identity
    assert identity_of(bytes(one), 2) == 0
    assert identity_of(bytes(one)[:-1], 3) == 0
    assert identity_of(bytes(one) + b"x", 3) == 0


@given(st.binary(max_size=40), st.integers(0, 5))
def test_garbage_names_nothing(garbage: bytes, rank: int) -> None:
    table = RegistrationTable(rank)
    table.register_memory(memoryview(bytearray(8)), ACCESS_ANY)
    assert identity_of(garbage, rank) == 0
    assert table.find(identity_of(garbage, rank), 0, 0, REMOTE_READ) is None


@given(st.integers(-5, 80), st.integers(-5, 80))
def test_bounds(offset: int, size: int) -> None:
    data = bytearray(range(64))
    table = RegistrationTable(0)
    known = table.register_memory(memoryview(data), REMOTE_READ)
    found = table.find(known.identity, offset, size, REMOTE_READ)
    if offset >= 0 and size >= 0 and offset + size <= 64:
        assert found is not None
        assert found == data[offset : offset + size]
    else:
        assert found is None
    assert table.find(known.identity, 0, 1, REMOTE_WRITE) is None


def test_low_bits_are_the_callers() -> None:
    table = RegistrationTable(0)
    identities = [
        table.register_memory(memoryview(b""), 0, low=5, bits=9).identity for _ in range(100)
    ]
    assert len(set(identities)) == 100
    assert {identity & 511 for identity in identities} == {5}


def test_given_back_once() -> None:
    table = RegistrationTable(0)
    memory = bytearray(8)
    known = table.register_memory(memoryview(memory), ACCESS_ANY)
    table.remove(known)
    assert table.find(known.identity, 0, 1, REMOTE_READ) is None
    memory.append(1)  # nothing refers to it
    for wrong in (
        known,
        RegistrationTable(0).register_memory(memoryview(memory), 0),
        None,
        b"handle",
    ):
        with pytest.raises(MPIError, match="not registered"):
            table.remove(wrong)


class Registrar(BtlModule):
    """Counts registrations."""

    def __init__(self) -> None:
        self.table = RegistrationTable(0)
        self.made = 0

    def register_mem(self, endpoint: Endpoint | None, memory: memoryview, flags: int) -> object:
        self.made += 1
        return self.table.register_memory(memory, flags)

    def deregister_mem(self, handle: object) -> None:
        self.table.remove(handle)


def test_without_leave_pinned_nothing_is_kept() -> None:
    cache, module, memory = RegistrationCache(0), Registrar(), memoryview(bytearray(100))
    for _ in range(3):
        pin = cache.pin(module, None, memory, REMOTE_READ)
        assert pin.offset == 0
        assert len(module.table) == 1
        cache.unpin(pin)
        assert not module.table
    assert module.made == 3


def test_the_same_memory_is_registered_once() -> None:
    cache, module, memory = RegistrationCache(4), Registrar(), memoryview(bytearray(100))
    first = cache.pin(module, None, memory, REMOTE_READ | REMOTE_WRITE)
    part = cache.pin(module, None, memory[10:30], REMOTE_READ)
    assert part.handle is first.handle
    assert part.offset == 10
    cache.unpin(first)
    cache.unpin(part)
    again = cache.pin(module, None, memoryview(memory), REMOTE_WRITE)
    assert again.handle is first.handle
    assert (module.made, cache.hits, cache.misses) == (1, 2, 1)
    more = cache.pin(module, None, memory, LOCAL_WRITE)
    assert more.handle is not first.handle, "that one does not allow it"
    other = cache.pin(Registrar(), None, memory, REMOTE_WRITE)
    assert other.handle is not first.handle, "that one is another module's"


def test_what_is_used_is_never_dropped_and_the_oldest_goes_first() -> None:
    cache, module = RegistrationCache(2), Registrar()
    memories = [memoryview(bytearray(8)) for _ in range(6)]
    used = cache.pin(module, None, memories[0], REMOTE_READ)
    for memory in memories[1:]:
        cache.unpin(cache.pin(module, None, memory, REMOTE_READ))
    assert len(cache) == len(module.table) == 3
    for memory in (memories[0], memories[4], memories[5]):
        cache.unpin(cache.pin(module, None, memory, REMOTE_READ))
    assert module.made == 6
    cache.clear()
    assert len(module.table) == 1
    cache.unpin(used)
    cache.clear()
    assert not module.table
    assert not len(cache)
