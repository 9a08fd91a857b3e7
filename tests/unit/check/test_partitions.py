"""Partitions that several threads make ready."""

from __future__ import annotations

from threading import Barrier, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from ompy.check.partitions import REQUEST_HANDLERS, ReadyParts


def test_the_last_partitions_of_two_threads_are_one_message() -> None:
    """Both have made theirs ready before either looks whether that was all."""
    sent: list[Any] = []
    both = Barrier(2)
    check = SimpleNamespace(
        number=lambda: 1,
        buffers=SimpleNamespace(begin_use=lambda *_, **__: both.wait(), end_use=lambda *_, **__: 0),
        recorder=SimpleNamespace(start_site=lambda at, *_: at),
        write_again=lambda event, _number: sent.append(event),
    )
    entry = SimpleNamespace(at=1, made=(1, "comm.Psend_init"), call="request.Start", number=5)
    parts = ReadyParts(check, entry, (1, 0, 0, None, "standard"), memoryview(bytes(4)), 2)
    for started in (1, 2):
        parts.forget_ready()
        threads = [Thread(target=parts.made_ready, args=(1, "Pready", [n])) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(sent) == started


@pytest.mark.parametrize(
    ("given", "named", "ready"),
    [
        ((1, 3), {}, [1, 2, 3]),
        ((0, -1), {}, []),
        ((1,), {"partition_high": 2}, [1, 2]),
        ((), {"partition_high": 2, "partition_low": 1}, [1, 2]),
    ],
)
def test_a_range_of_partitions(
    given: tuple[int, ...], named: dict[str, int], ready: list[int]
) -> None:
    told: list[int] = []
    parts = SimpleNamespace(made_ready=lambda _at, _call, chosen: told.extend(chosen))
    entry = SimpleNamespace(parts=parts, active=True)
    check: Any = SimpleNamespace(requests=SimpleNamespace(of=lambda _request: entry))
    call = REQUEST_HANDLERS["Pready_range"]
    call(check, 1, "request.Pready_range", lambda *_, **__: None, "request", *given, **named)
    assert told == ready
