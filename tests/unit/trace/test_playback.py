"""What a page that plays a trace is made of: each part of it from events written by hand."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from ompy.cli.tracing.trace import trace as ompy_trace
from ompy.trace.message_events import messages
from ompy.trace.playing import playback_contents
from ompy.trace.playing.playback import WIDEST, family_of, gap, playback
from ompy.trace.playing.player_page import player_page
from ompy.trace.reading import Ended, RankHeader
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace, TraceWriter
from ompy.trace.trace_files import RankHeader as Header
from ompy_components.pml.ob1.selection import Protocol

EAGER, LARGE = "Eager Send (Prepared)", "RDMA Pipeline"


def event(time: int, rank: int, layer: str, name: str, **fields: object) -> Event:
    return Event(time, rank, layer, name, tuple(fields.items()))


def call(time: int, rank: int, number: int, name: str, **fields: object) -> Event:
    where = {"file": "/home/app.py", "line": number, "function": "main"}
    return event(time, rank, "api", "CALL", number=number, call=name, **fields, **where)


def line(time: int, rank: int, number: int, text: str) -> Event:
    return event(time, rank, "api", "LINE", file="/home/app.py", line=number, text=text)


def ended(time: int, rank: int, number: int, **fields: object) -> Event:
    return event(time, rank, "api", "RETURN", number=number, **fields)


def post(time: int, rank: int, number: int, **fields: object) -> Event:
    return event(time, rank, "pml", "POST", side="receive", context=0, posted=number, **fields)


def message(
    times: tuple[int, int, int],
    ranks: tuple[int, int] = (0, 1),
    sequence: int = 1,
    posted: int = 0,
    protocol: str = EAGER,
    tag: int = 3,
) -> list[Event]:
    """Sent, arrived, matched."""
    sent, arrived, matched = times
    sender, receiver = ranks
    both = {"tag": tag, "context": 0, "source": sender, "sequence": sequence}
    mine = {"side": "send", "peer": receiver, **both}
    its = {"side": "receive", **both}
    return [
        event(sent, sender, "pml", "PROTOCOL", **mine, size=13, protocol=protocol),
        event(sent, sender, "pml", "MATCH", **mine, payload=13),
        event(sent, sender, "pml", "COMPLETE", **mine),
        event(arrived, receiver, "pml", "MATCH", **its, payload=13),
        event(matched, receiver, "pml", "COMPLETE", **its, peer=sender, posted=posted),
    ]


def job(events: list[Event], ranks: int = 2, facts: dict[str, Any] | None = None) -> JobTrace:
    headers = {rank: RankHeader(rank, 0, "here") for rank in range(ranks)}
    ends = {rank: Ended("finalize") for rank in range(ranks)}
    ordered = sorted(events, key=lambda each: each[:2])
    return JobTrace(facts or {}, headers, ends, ordered)


def test_a_message_that_nobody_waits_for() -> None:
    """Two ranks: one message is unexpected, the other meets a receive that is posted."""
    events = [
        line(1000, 0, 5, "comm.Send(data, 1, 3)"),
        call(1000, 0, 5, "Send", dest=1, tag=3, bytes=13),
        *message((1000, 3000, 9000)),
        ended(2000, 0, 5),
        post(8000, 1, 1, source=0, tag=4),
        *message((8500, 9500, 9500), sequence=2, posted=1, tag=4, protocol=LARGE),
    ]
    told = playback(job(events, ranks=2))
    steps = told["steps"]
    first, second = told["arrows"]
    assert [steps[first[end]]["time"] for end in ("start", "end")] == [1000, 3000]
    assert first["start"] < first["end"] < second["start"] < second["end"]
    assert (first["from"], first["to"], first["size"]) == (0, 1, "13 B")
    unexpected = next(each for each in told["waiting"] if each["queue"] == "unexpected")
    assert unexpected["text"] == "from rank 0, tag 3, 13 B"
    assert [steps[unexpected[end]]["time"] for end in ("start", "end")] == [3000, 9000]
    (posted,) = (each for each in told["waiting"] if each["queue"] == "posted")
    assert (posted["text"], posted["lane"]) == ("from rank 0, tag 4", 1)
    assert [steps[posted[end]]["time"] for end in ("start", "end")] == [8000, 9500]
    assert [each["family"] for each in told["messages"]] == ["eager", "pipelined"]
    (only,) = told["calls"]
    assert (only["text"], only["line"]) == ("comm.Send(data, 1, 3)", "app.py:5")
    assert "no receive fits" in steps[unexpected["start"]]["text"]
    assert steps[only["start"]]["text"] == "calls Send (app.py:5)"
    assert told["left_out"] == []


def test_what_never_ends() -> None:
    """A deadlock: the receive stays posted, the message for another tag stays unexpected."""
    sent, got = message((0, 500, 0))[:3], message((0, 500, 0))[3:4]
    told = playback(job([*sent, *got, call(600, 1, 9, "Recv"), post(700, 1, 1, source=0, tag=9)]))
    assert {each["queue"]: each["end"] for each in told["waiting"]} == {
        "posted": None,
        "unexpected": None,
    }
    assert [each["end"] for each in told["calls"]] == [None]


def test_an_arrival_never_comes_before_its_sending() -> None:
    """Clocks of two hosts may say so."""
    told = playback(job(message((5000, 1000, 1000))))
    (arrow,) = told["arrows"]
    assert arrow["start"] < arrow["end"]
    places = [step["place"] for step in told["steps"]]
    assert places == sorted(set(places))


def test_a_receive_names_ranks_of_its_communicator() -> None:
    group = event(0, 2, "api", "GROUP", context=4, comm="half", group=1, members="1-3")
    receive = {"side": "receive", "context": 4, "source": 0, "tag": -1}
    told = playback(job([group, event(5, 2, "pml", "POST", posted=1, **receive)], ranks=4))
    assert [each["text"] for each in told["waiting"]] == ["from rank 1, any tag"]
    anybody = playback(job([post(5, 1, 1, source=-1, tag=7)]))
    assert [each["text"] for each in anybody["waiting"]] == ["from any rank, tag 7"]


def test_a_message_that_was_not_received() -> None:
    told = playback(job(message((0, 1, 2))[:3]))
    assert [arrow["end"] for arrow in told["arrows"]] == [None]


def test_a_message_without_a_sender_is_said_to_be_left_out() -> None:
    told = playback(job(message((0, 1, 2))[3:4]))
    assert told["messages"] == []
    assert told["left_out"] == ["1 messages whose sender is not in the trace"]


def test_chosen_messages_alone() -> None:
    events = [*message((0, 1, 2)), *message((3, 4, 5), sequence=2), post(9, 1, 7, source=0, tag=1)]
    trace = job(events, ranks=3)
    told = playback(trace, messages(trace.events)[1:])
    assert [rank["rank"] for rank in told["ranks"]] == [0, 1]
    assert len(told["messages"]) == 1
    assert [each["queue"] for each in told["waiting"]] == ["unexpected"]


def test_a_large_trace_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playback_contents, "MOST_STEPS", 20)
    monkeypatch.setattr(playback_contents, "MOST_LANES", 2)
    events = [
        each
        for number in range(50)
        for each in message((10 * number, 10 * number + 1, 10 * number + 2), sequence=number)
    ]
    events += [post(600, 0, 1, source=1, tag=1), call(5, 2, 1, "Barrier"), ended(800, 2, 1)]
    told = playback(job(events, ranks=3))
    assert len(told["messages"]) == 5
    assert len(told["steps"]) <= 20
    lanes, cut = told["left_out"]
    assert lanes.startswith("1 of 3 ranks")
    assert cut.startswith("what begins at 0.1 us or later: 45 of 50 messages, 1 of 1 posted rec")


@given(st.integers(-(10**6), 10**18), st.integers(0, 10**18))
def test_gaps_grow_with_the_time(nanoseconds: int, more: int) -> None:
    assert 1 <= gap(nanoseconds) <= gap(nanoseconds + more) <= WIDEST
    assert math.isfinite(gap(nanoseconds))


def test_every_protocol_has_a_family() -> None:
    """And each its own letters, by which the page knows it."""
    families = {protocol: family_of(protocol.value) for protocol in Protocol}
    assert set(families.values()) == {"eager", "pipelined", "rendezvous"}
    assert all(family == "eager" for each, family in families.items() if "EAGER" in each.name)
    assert family_of("") == "other"


def test_a_trace_cannot_leave_its_place_in_the_page() -> None:
    evil = "</script><script>alert(1)</script><!-- @TITLE@ @DATA@ @SCRIPT@"
    events = [line(0, 0, 1, evil), call(0, 0, 1, "Send"), ended(5, 0, 1)]
    facts = {"ranks": [{"program": evil}, {"program": evil}]}
    page = player_page(playback(job(events, facts=facts)))
    assert page.count("</script>") == 2
    assert "<script>alert" not in page
    (data,) = re.findall(r'<script type="application/json" id="trace">(.*)</script>', page)
    told = json.loads(data)
    assert (told["title"], told["calls"][0]["text"]) == (evil, evil)
    assert "http:" not in page.replace("http://www.w3.org/2000/svg", "")  # a name, not an address


def written(folder: Path, events: list[Event]) -> str:
    for rank in (0, 1):
        writer = TraceWriter(str(folder), Header(rank, 0, "here"), 1000)
        writer.write([each for each in events if each.rank == rank])
        writer.close("finalize")
    return str(folder)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 0, "2 ranks, 2 messages, 1 calls, "),
        (["--rank", "0", "--from", "2"], 0, "2 ranks, 1 messages, 0 calls, "),
        (["--call", "Send"], 0, "2 ranks, 1 messages, 1 calls, "),
        (["--tag", "77"], 1, "no such message"),
        (["--gasnet"], 1, "no such operation"),
    ],
)
def test_the_command(options: list[str], code: int, said: str, tmp_path: Path) -> None:
    events = [
        call(0, 0, 5, "Send", dest=1, tag=3, bytes=13),
        *message((1, 30, 90)),
        ended(2, 0, 5),
        *message((40, 50, 90), sequence=2),
    ]
    folder, page = written(tmp_path / "run", events), tmp_path / "page.html"
    done = CliRunner().invoke(ompy_trace, [folder, "--play", str(page), *options])
    assert (done.exit_code, said in done.output) == (code, True), done.output
    assert page.exists() == (code == 0)


def test_a_page_that_cannot_be_made(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", [])
    for name, said in (("a.html", "nothing to play"), ("a.svg", "a name in .html is needed")):
        done = CliRunner().invoke(ompy_trace, [folder, "--play", str(tmp_path / name)])
        assert done.exit_code != 0
        assert said in done.output
        assert not (tmp_path / name).exists()
    nowhere = str(tmp_path / "none" / "a.html")
    full = written(tmp_path / "full", message((1, 2, 3)))
    done = CliRunner().invoke(ompy_trace, [full, "--play", nowhere])
    assert "it cannot be written" in done.output
