"""A program beside its recording: what agrees goes on, and what differs is said with both lines."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from ompy.data.convertor import GrowingConvertor
from ompy.data.request import Request
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import Pml
from ompy.replay.counting_pml import CountingPml
from ompy.replay.entries import EVENTS, Entries, Header
from ompy.replay.events import (
    Cancelled,
    Comm,
    Completed,
    Ended,
    Entry,
    Event,
    File,
    Looked,
    Matched,
    Note,
    NotYet,
    Posted,
    Prefix,
    Raised,
    Site,
    Time,
    bytes_of,
    folded,
)
from ompy.replay.follower import Follower
from ompy.replay.program_lines import check_of
from ompy.replay.recording import RankRecording

HERE = str(Path(__file__).resolve())
HEADER = Header(EVENTS, 0, 2, b"12345678")


class Stopped(Exception):
    """The replay cannot go on."""


class Outcome:
    """Raises what is said."""

    def diverged(self, text: str) -> NoReturn:
        raise Stopped(f"diverged: {text}")

    def ended(self, text: str) -> NoReturn:
        raise Stopped(f"ended: {text}")

    def mended(self, text: str) -> NoReturn:
        raise Stopped(f"ended: {text}")


def recording(*entries: Entry, complete: bool = True, check: int | None = None) -> RankRecording:
    """Of rank 0, with one line of this file as site 1."""
    whole = check_of(HERE) if check is None else check
    named: list[Entry] = [
        File(1, whole, HERE),
        Site(1, 1, line_of_ask(), "ask"),
        Comm(1, 0, 0, 2, "WORLD"),
    ]
    bodies = [memoryview(bytes_of(entry)) for entry in (*named, *entries)]
    return RankRecording(Entries(HEADER, bodies, complete), "rank-0.events")


def line_of_ask() -> int:
    """The line that asks."""
    lines = Path(HERE).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith("  # " + "ask"))


def follow(recorded: RankRecording) -> Follower:
    """A follower at its beginning."""
    made = Follower(recorded, Outcome())
    made.pml = CountingPml(Silent(), False)
    return made


class Silent(Pml):
    """Begins whatever it is asked to."""

    def isend(self, *_: Any) -> Request:
        return Request()

    def recv(self, *_: Any) -> Request:
        return Request()


def communicator(served: bool) -> Communicator:
    """Of one member; compiled, nothing else is taken for a communicator."""
    me: Any = SimpleNamespace(rank=0)
    context: Any = SimpleNamespace(me=me)
    made = Communicator(context, Silent(), 0, [me], "MPI_COMM_MINE")
    made.served = served
    return made


COMM: Any = communicator(False)
OF_A_WINDOW: Any = communicator(True)


def send(follower: Follower, target: int, tag: int) -> None:
    """What counts of it; beside what does not."""
    room: Any = GrowingConvertor()
    follower.pml.isend(OF_A_WINDOW, room, target, tag, 0)
    follower.pml.isend(COMM, room, target, -7, 0)
    follower.pml.isend(COMM, room, target, tag, 0)


def receive(follower: Follower, source: int, tag: int) -> None:
    """Likewise."""
    room: Any = GrowingConvertor()
    follower.pml.recv(OF_A_WINDOW, room, source, tag)
    follower.pml.recv(COMM, room, source, -7)
    follower.pml.recv(COMM, room, source, tag)


def ask(follower: Follower, event: Any) -> Event:
    """What the program is told when it asks this."""
    return follower.next_event(event._replace(prefix=follower.prefix()))  # ask


P = Prefix(1, 0, 0)
RECV = Looked(P, 0, 1, -1, 3, 1, 3, 8)


def test_answers_come_in_their_order_and_no_comes_as_often() -> None:
    told: list[Entry] = [
        RECV,
        NotYet(P, 0, 1, 1),
        NotYet(P, 0, 1, 2),
        Completed(P, 0, 1, (0,)),
        Time(P, 2.5),
    ]
    follower = follow(recording(*told))
    assert ask(follower, RECV._replace(source=-1, tag=-1)) == RECV
    for _ in range(3):
        assert isinstance(ask(follower, Completed(P, 0, 1, ())), NotYet)
    assert ask(follower, Completed(P, 0, 1, ())) == Completed(P, 0, 1, (0,))
    assert ask(follower, Time(P, 0.0)) == Time(P, 2.5)
    assert follower.position == 4


def test_matches_and_cancels_are_known_before_they_are_asked_for() -> None:
    found = recording(
        Posted(P, 1, 1, -1, -1), Posted(P, 1, 2, -1, -1), Cancelled(P, 1, 1), Cancelled(P, 2, 0),
        Matched(2, 1, 7, 9),
    )  # fmt: skip
    assert found.cancelled == {1}
    assert found.matches == {2: Matched(2, 1, 7, 9)}
    assert found.said_of(found.events[0]) == "Irecv from any source, any tag in WORLD -> nothing"
    assert found.said_of(found.events[1]).endswith("-> rank 1, tag 7, 9 bytes")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (RECV._replace(wanted_tag=4), "Recv from any source, tag 4"),
        (RECV._replace(how=1), "Probe from any source, tag 3"),
        (RECV._replace(comm=2), "the calls differ"),
        (Time(P, 0.0), "Wtime"),
        (Completed(P, 0, 2, ()), "Test of 2 requests"),
        (Ended(P), "Finalize"),
    ],
)
def test_another_question_is_a_divergence_with_both_lines(asked: Event, said: str) -> None:
    follower = follow(recording(RECV))
    with pytest.raises(
        Stopped, match="diverged: rank 0 does not do what it did, at event 1"
    ) as told:
        ask(follower, asked)
    assert said in str(told.value)
    assert str(told.value).count("test_follower.py") == 2


def test_what_was_sent_in_between_is_counted() -> None:
    follower = follow(
        recording(RECV._replace(prefix=Prefix(1, 2, folded(folded(0, 1, 5, 6), 2, 1, 2))))
    )
    send(follower, 5, 6)
    with pytest.raises(Stopped, match="it has begun 1 sends .*, in the recording 2"):
        ask(follower, RECV)
    receive(follower, 1, 3)
    with pytest.raises(Stopped, match="peers or tags differ"):
        ask(follower, RECV)


def test_the_count_is_that_of_the_recording() -> None:
    follower = follow(
        recording(RECV._replace(prefix=Prefix(1, 2, folded(folded(0, 1, 5, 6), 2, 1, 2))))
    )
    send(follower, 5, 6)
    receive(follower, 1, 2)
    assert isinstance(ask(follower, RECV), Looked)


def test_another_line_is_a_divergence_in_a_file_that_has_not_changed() -> None:
    follower = follow(recording(RECV, RECV))
    with pytest.raises(Stopped, match="the lines differ"):
        follower.next_event(RECV._replace(prefix=follower.prefix()))


def test_a_changed_file_is_compared_by_functions() -> None:
    follower = follow(recording(RECV, RECV, check=1))

    def ask() -> Event:
        return follower.next_event(RECV._replace(prefix=follower.prefix()))

    assert isinstance(ask(), Looked)
    with pytest.raises(Stopped, match="the lines differ"):
        follower.next_event(RECV._replace(prefix=follower.prefix()))


def test_a_killed_rank_ends_where_its_recording_does() -> None:
    follower = follow(recording(RECV, complete=False))
    ask(follower, RECV)
    with pytest.raises(
        Stopped, match=r"^ended: .* ends at .*test_follower.py:\d+ in ask, in Wtime"
    ):
        ask(follower, Time(P, 0.0))


def test_more_than_a_whole_recording_has_is_a_divergence() -> None:
    follower = follow(recording(Ended(P)))
    with pytest.raises(Stopped, match="diverged: .*event 1"):
        ask(follower, Time(P, 0.0))


def test_a_mended_program_goes_on_where_it_had_ended() -> None:
    with pytest.raises(Stopped, match="diverged: .*event 1"):
        ask(follow(recording(Raised(P, "AssertionError"))), Time(P, 0.0))
    with pytest.raises(Stopped, match="ended: .* by AssertionError; the program has been changed"):
        ask(follow(recording(Raised(P, "AssertionError"), check=1)), Time(P, 0.0))
    assert ask(follow(recording(Raised(P, "KeyError"))), Raised(P, "KeyError"))
    with pytest.raises(Stopped, match="its end by OSError"):
        ask(follow(recording(Raised(P, "KeyError"))), Raised(P, "OSError"))


def test_who_waits_for_what_never_came_is_told_which() -> None:
    with pytest.raises(Stopped, match="ended"):
        follow(recording(complete=False)).stands_at("a wait")
    with pytest.raises(Stopped, match="diverged: rank 0 waits for ever"):
        follow(recording(Ended(P))).stands_at("a wait")


def test_the_rank_stops_before_an_event() -> None:
    follower = follow(recording(RECV, NotYet(P, 0, 1, 5), RECV))
    stops: list[int] = []
    follower.stop_at, follower.on_stop = 3, lambda: stops.append(follower.position)
    ask(follower, RECV)
    for _ in range(5):
        ask(follower, Completed(P, 0, 1, ()))
    assert not stops
    ask(follower, RECV)
    assert stops == [2]


def test_notes_keep_their_lines() -> None:
    found = recording(Note(1, 3, "Comm.Join: it meets others"))
    assert found.notes[0].text == "Comm.Join: it meets others"
    assert found.place_of_site(found.notes[0].site).function == "ask"
    assert not found.place_of_site(99).file
