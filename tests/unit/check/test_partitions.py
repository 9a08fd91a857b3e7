"""Partitions that several threads make ready."""

from __future__ import annotations

from threading import Barrier, Thread
from types import SimpleNamespace
from typing import Any

from ompy.check.partitions import ReadyParts


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
