"""What a peer must not do ends in an error completion, and touches no memory."""

from __future__ import annotations

import errno
import struct
from functools import partial

import pytest
from ompy.frameworks.nic.fabric import AtomicCall, Caps, Datatype, FabricError, Op
from ompy_components.nic.ofi_emulated.errors import ENOKEY, EOPBADSTATE, ETRUNC

from tests.sim.ofi_emulated.test_programs import PROVIDERS
from tests.support.fabric_job import Rank, run
from tests.support.fabric_programs import ALL, FREE, SIZE, Side

CANARY = b"\xc5" * SIZE
WRONG = {
    "key": ENOKEY,
    "below": errno.EINVAL,
    "above": errno.EINVAL,
    "access": errno.EACCES,
    "closed": ENOKEY,
}


def attempt(side: Side, kind: str, at: int, key: int, size: int) -> int:
    """One operation on the peer's memory. Returns the error it ends with."""
    view = side.memory[:size]
    where = (side.to, side.there.base + at, key)
    eight = memoryview(bytearray(8))
    call = {
        "write": partial(side.endpoint.write, view, side.here, *where, kind),
        "read": partial(side.endpoint.read, view, side.here, *where, kind),
        "atomic": partial(side.endpoint.atomic, eight, *where, Datatype.UINT64, Op.SUM, kind),
        "fetch": partial(
            side.endpoint.fetch_atomic,
            eight,
            side.memory[:8],
            side.here,
            *where,
            Datatype.UINT64,
            Op.SUM,
            kind,
        ),
        "compare": partial(
            side.endpoint.compare_atomic,
            eight,
            eight,
            side.memory[:8],
            side.here,
            *where,
            Datatype.UINT64,
            Op.CSWAP,
            kind,
        ),
    }[kind]
    side.post(call)
    found = side.finished(kind)
    assert bool(found.detail) is bool(found.error)
    return found.error


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("provider", PROVIDERS[:3])
def test_wrong_remote_memory(provider: str, wrong: str) -> None:
    def program(rank: Rank) -> list[int]:
        side = rank.side(provider, access=Caps.READ | Caps.WRITE if wrong == "access" else ALL)
        side.memory[:] = CANARY
        side.meet()
        found = []
        if wrong == "closed" and rank.rank == 1:
            side.region.close()
        side.meet()
        if rank.rank == 0:
            side.memory[:] = bytes(SIZE)
            at = {"below": -8, "above": SIZE - 4}.get(wrong, 0)
            key = side.there.key ^ (1 << 40 if wrong == "key" else 0)
            for kind in ("write", "read", "atomic", "fetch", "compare"):
                if side.there.base + at >= 0:
                    found.append(attempt(side, kind, at, key, 8))
            assert bytes(side.memory[:FREE]) == bytes(FREE), "nothing was read"
        side.meet()
        if rank.rank == 1:
            assert bytes(side.memory[:FREE]) == CANARY[:FREE], "nothing was written"
        side.close()
        return found

    job, counter = run(program)
    errors = job.results[0]  # type: ignore[attr-defined]
    assert set(errors) <= {WRONG[wrong]}
    assert len(errors) == (0 if (provider, wrong) == ("emulated;offset", "below") else 5)
    assert counter.delivered["refused"] == len(errors)


def test_a_region_that_is_closed_under_a_write() -> None:
    """The bytes that come after that are dropped, and the write ends badly."""

    def program(rank: Rank) -> int:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            side.memory[:200_000] = bytes([1]) * 200_000
            side.write(0, 200_000, 0, "write")
            found = side.finished("write").error
        else:
            found = 0
            side.wait(lambda: side.memory[0] == 1, "its first byte")
            side.region.close()
            landed = bytes(side.memory[:200_000]).count(1)
            assert 0 < landed < 200_000
        side.meet()
        if rank.rank == 1:
            assert bytes(side.memory[:200_000]).count(1) == landed
        side.close()
        return found

    job, counter = run(program)
    assert job.results[0] == ENOKEY  # type: ignore[attr-defined]
    counter.require("refused")


def test_what_had_completed_already_ends_the_connection() -> None:
    """Without delivery a write is complete when it is sent; its refusal breaks the rest."""

    def program(rank: Rank) -> list[int]:
        side = rank.side(op_flags=Caps(0))
        side.meet()
        found = []
        if rank.rank == 0:
            side.write(0, 8, 0, "bad", key=5)
            assert side.finished("bad").error == 0
            side.read(0, 100_000, 0, "read")
            found.append(side.finished("read").error)
            side.read(0, 8, 0, "again")
            found.append(side.finished("again").error)
            side.write(0, 8, 0, "bad", key=5)
            side.good("bad")
            rank.engine.wait_until(lambda: False, 10_000_000)
            with pytest.raises(FabricError) as told:
                side.read(0, 8, 0, "not told yet")
            found.append(told.value.errno)
        side.meet()
        side.close()
        return found

    job, _ = run(program)
    wanted = [errno.ECONNABORTED, 0, errno.ECONNABORTED]
    assert job.results[0] == wanted  # type: ignore[attr-defined]


@pytest.mark.parametrize("early", [False, True], ids=["posted before", "posted after"])
def test_a_message_that_is_too_long(early: bool) -> None:
    def program(rank: Rank) -> None:
        side = rank.side()
        side.memory[:] = CANARY
        side.meet()
        if rank.rank == 0:
            side.memory[:1000] = bytes(1000)
            side.send(0, 1000, "long")
            side.good("long")
            side.send(0, 10, "short")
            side.good("short")
        else:
            if not early:
                rank.compute(0.01)
            side.receive(0, 100, "cut")
            side.receive(200, 100, "whole")
            cut = side.finished("cut")
            assert (cut.error, cut.size) == (ETRUNC, 100)
            assert side.good("whole").size == 10
            assert bytes(side.memory[:300]) == bytes(100) + CANARY[:100] + bytes(10) + CANARY[:90]
        side.meet()
        side.close()

    run(program)


def test_what_cannot_be_posted() -> None:
    def program(rank: Rank) -> None:
        side = rank.side("emulated;early", caps=Caps.MSG | Caps.RMA)
        side.meet()
        view = side.memory[:8]
        refused = {
            errno.ENOSYS: lambda: side.endpoint.atomic(
                view, side.to, 0, 0, Datatype.UINT64, Op.SUM, ""
            ),
            errno.EMSGSIZE: lambda: side.endpoint.inject(side.memory[:5000], side.to),
            errno.EINVAL: lambda: side.endpoint.send(view, None, 77, ""),
        }
        for number, call in refused.items():
            with pytest.raises(FabricError) as told:
                call()
            assert told.value.errno == number
        assert not side.endpoint.atomic_valid(AtomicCall.FETCH, Datatype.UINT64, Op.SUM)
        fresh = side.domain.endpoint(side.vector, side.queue)
        for call in (fresh.name, lambda: fresh.send(view, None, side.to, "")):
            with pytest.raises(FabricError) as told:
                call()
            assert told.value.errno == EOPBADSTATE
        with pytest.raises(FabricError) as told:
            side.domain.register(side.memory, ALL, side.region.key)
        assert told.value.errno == ENOKEY
        with pytest.raises(FabricError) as told:
            side.domain.register(memoryview(b"abc"), ALL, 1)
        assert told.value.errno == errno.EACCES
        for name in (b"", b"abc", struct.pack("<IHI", 9, 1, 1) + b"rail0/0"):
            with pytest.raises(FabricError) as told:
                side.vector.insert(name)
            assert told.value.errno == errno.EINVAL
        side.meet()
        side.close()

    run(program)
