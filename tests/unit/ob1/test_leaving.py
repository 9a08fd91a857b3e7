"""LEAVE on the wire: its records, in one message or in several, and what is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ompy.data.errors import ERR_INTERN, MPIError
from ompy_components.pml.ob1.departures.leaving import (
    LEAVE_HEADER,
    LEAVE_RECORD,
    UNRECEIVED,
    Leaving,
    Records,
    Traffic,
)
from ompy_components.pml.ob1.headers import LEAVE


def heard() -> tuple[Leaving, list[tuple[int, Records]]]:
    """One that listens, and what it hears."""
    said: list[tuple[int, Records]] = []
    ob1: Any = SimpleNamespace(trace=SimpleNamespace(noting=False))
    context: Any = SimpleNamespace(procs=[None, None])
    return Leaving(ob1, context, lambda rank, records: said.append((rank, records))), said


def message(total: int, *records: bytes, rank: int = 1) -> memoryview:
    return memoryview(LEAVE_HEADER.pack(LEAVE, 0, rank, total) + b"".join(records))


def test_every_byte_is_where_it_is_declared() -> None:
    assert LEAVE_HEADER.pack(LEAVE, 0, 7, 2).hex() == "4700000007000000" + "0200000000000000"
    packed = LEAVE_RECORD.pack(3, 1 << 40, 5).hex()
    assert packed == "0300000000000000" + "0000000000010000" + "0500000000000000"


def test_records_in_any_order_and_twice() -> None:
    said_by_peer = Records()
    said_by_peer.traffic = {0: Traffic(3, 1 << 33), 9: Traffic(0, 1)}
    said_by_peer.unreceived = {4, 5}
    one, two, three, four = said_by_peer.packed()
    leaving, said = heard()
    for part in ((three, four), (three, four), (one,), (two,), (one,), (two,)):
        leaving.received(None, None, LEAVE, message(4, *part))  # type: ignore[arg-type]
    ((rank, records),) = said  # once
    assert rank == 1
    assert records.traffic == said_by_peer.traffic
    assert records.unreceived == {4, 5}


def test_a_leave_without_records() -> None:
    leaving, said = heard()
    leaving.received(None, None, LEAVE, message(0))  # type: ignore[arg-type]
    assert [rank for rank, _ in said] == [1]


@pytest.mark.parametrize(
    "data",
    [
        message(1, b"\0"),
        message(0, rank=2),
        message(0, rank=-1),
        message(0)[:-1],
        memoryview(b"\x41" + bytes(LEAVE_HEADER.size)),
    ],
)
def test_what_is_none(data: memoryview) -> None:
    leaving, said = heard()
    with pytest.raises(MPIError) as caught:
        leaving.received(None, None, LEAVE, data)  # type: ignore[arg-type]
    assert caught.value.code == ERR_INTERN
    assert not said


def test_no_context_id_is_taken_for_a_send_request() -> None:
    assert UNRECEIVED > 65535  # communicator.py: the largest
