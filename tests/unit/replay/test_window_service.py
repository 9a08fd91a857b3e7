"""What was served in windows is written down, held back until its step, and done again."""

from __future__ import annotations

from threading import RLock
from types import SimpleNamespace
from typing import Any

import pytest
from ompy.frameworks.osc_base.headers import Command, Kind
from ompy.replay.data_log import Served, Streams, message_bytes, served_bytes
from ompy.replay.entries import RecordingError
from ompy.replay.windows.service import AloneService, OrderedService

WINDOW = 9  # arbitrary: context id
PUT = Command(Kind.PUT, size=1, data=b"x")
ADD = Command(Kind.ACCUMULATE, size=1, data=b"y")
LARGE = Command(Kind.PUT, 4, size=3)


class Module:
    """A window, that notes what it is told to do."""

    def __init__(self) -> None:
        self.window = SimpleNamespace(communicator=SimpleNamespace(context_id=WINDOW))
        self.target = SimpleNamespace(try_again=lambda: None)
        self.done: list[tuple[int, Kind, bytes]] = []
        self.awaited: dict[int, object] = {}

    def peer(self, _rank: int) -> Any:
        return self

    def take_command(self, origin: int, command: Command) -> None:
        self.done.append((origin, command.kind, bytes(command.data)))


def streams_of(
    *served: tuple[int, int, Command, bool], messages: tuple[bytes, ...] = ()
) -> Streams:
    """A data file: step, origin and command of what was served, and whether it only began."""
    bodies = [
        served_bytes(Served(begins, step, WINDOW, origin, memoryview(command.packed())))
        for step, origin, command, begins in served
    ]
    return Streams([memoryview(body) for body in (*bodies, *messages)], "rank-0.data")


class Differs(Exception):
    """Another order."""


def ordered_by(*served: tuple[int, int, Command, bool], progress: Any = None) -> OrderedService:
    def differ(origin: int, now: str, then: str) -> None:
        raise Differs(f"{origin}: {now}, {then}")

    engine: Any = SimpleNamespace(lock=RLock(), progress=progress)
    follower: Any = SimpleNamespace(served_differ=differ)
    made = OrderedService(streams_of(*served).served, engine, follower)
    module: Any = Module()
    made.opened(module)
    return made


def test_an_entry_that_is_cut_is_an_error() -> None:
    whole = served_bytes(Served(False, 1, WINDOW, 2, memoryview(PUT.packed())))
    with pytest.raises(RecordingError, match="not whole"):
        Streams([memoryview(whole)[:9]], "rank-0.data")


def test_who_was_served_later_is_held_back() -> None:
    service = ordered_by((0, 2, PUT, False), (0, 1, ADD, False), (1, 1, PUT, False))
    assert not service.may_serve(WINDOW, 1, ADD), "2 comes first"
    assert service.may_serve(WINDOW, 2, PUT)
    service.served(WINDOW, 2, PUT)
    assert service.may_serve(WINDOW, 1, ADD)
    service.served(WINDOW, 1, ADD)
    assert not service.may_serve(WINDOW, 1, PUT), "in the step after this"
    service.end_step()
    assert service.may_serve(WINDOW, 1, PUT)
    service.served(WINDOW, 1, PUT)
    assert service.may_serve(WINDOW, 2, ADD), "the recording ends"


def test_what_only_lets_calls_end_is_never_held_back() -> None:
    service = ordered_by((5, 2, PUT, False))
    for kind in (Kind.UNLOCK, Kind.FLUSH, Kind.COMPLETE):
        assert service.may_serve(WINDOW, 1, Command(kind))


def test_another_command_than_the_recorded_one_is_said() -> None:
    service = ordered_by((0, 2, PUT, False))
    with pytest.raises(Differs, match="2: ACCUMULATE 0, PUT 0"):
        service.may_serve(WINDOW, 2, ADD)


def test_a_step_waits_for_what_was_served_in_it_and_for_its_data() -> None:
    polls: list[int] = []

    def progress() -> None:
        polls.append(service.step)
        if len(polls) == 1:
            service.served(WINDOW, 1, LARGE, begins=True)
        elif len(polls) == 3:
            service.served(WINDOW, 1, LARGE)

    service = ordered_by((0, 1, LARGE, True), (1, 1, LARGE, False), progress=progress)
    service.end_step()
    assert polls == [0], "it has begun"
    service.end_step()
    assert polls == [0, 1, 1], "its data are there"


def test_alone_it_is_done_in_its_step_with_the_data_that_followed() -> None:
    message = message_bytes(1, (WINDOW, 1, LARGE.tag), 3, b"abc")
    streams = streams_of(
        (0, 2, PUT, False), (0, 1, LARGE, True), (1, 1, LARGE, False),
        (1, 2, Command(Kind.GET, 6, size=1), False), (2, 2, Command(Kind.COMPLETE), False),
        messages=(message,),
    )  # fmt: skip
    engine: Any = SimpleNamespace(lock=RLock())
    module: Any = Module()
    service = AloneService(streams, engine)
    assert service.serve() == 0, "there is no window"
    service.opened(module)
    assert service.serve() == 1
    assert module.done == [(2, Kind.PUT, b"x")]
    service.end_step()
    assert module.done[1:] == []
    service.end_step()
    assert module.done[1:] == [(1, Kind.PUT, b"abc")]
    assert service.serve() == 1
    assert module.done[2:] == [(2, Kind.COMPLETE, b"")]


def test_alone_a_refusal_waits_for_what_it_refuses() -> None:
    refusal = Command(Kind.REFUSED, 8, size=3)
    engine: Any = SimpleNamespace(lock=RLock())
    module: Any = Module()
    service = AloneService(streams_of((0, 1, refusal, False)), engine)
    service.opened(module)
    assert service.serve() == 0
    module.awaited[8] = None
    assert service.serve() == 1
    assert module.done == [(1, Kind.REFUSED, b"")]
