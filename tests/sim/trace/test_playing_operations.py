"""GASNet's operations in a page that plays a trace: arrows, handlers, what waits in the ranks."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from ompy.cli.tracing.trace import trace as ompy_trace
from ompy.gasnet import Gasnet
from ompy.trace.operations import is_of_program, operations
from ompy.trace.playing.playback import playback
from ompy.trace.reading import Ended
from ompy.trace.trace_files import JobTrace, RankHeader, TraceWriter

from tests.support.gasnet_worlds import CONDUITS, traced

PAGE = 4096
RANKS = 3


def program(gasnet: Gasnet) -> None:
    """A request that is answered, one to oneself, a put, a get of several posts, an atomic."""
    heard: list[int] = []

    def ask(token: Any, payload: memoryview) -> None:
        gasnet.am_reply_short(token, answer, len(payload))

    def answer(_token: Any, _payload: memoryview, number: int) -> None:
        heard.append(number)

    gasnet.init()
    gasnet.attach([ask, answer], segment_size=512 * PAGE)
    me = gasnet.mynode()
    for node in ((me + 1) % gasnet.nodes(), me):
        gasnet.am_request_medium(node, ask, b"abc")
    gasnet.block_until(lambda: len(heard) == 2)
    peer = (me + 1) % gasnet.nodes()
    gasnet.put(peer, 0, bytes(100))
    gasnet.get(bytearray(10_001), peer, 3)
    gasnet.barrier()


@cache
def job_trace(name: str) -> JobTrace:
    events = list(traced(CONDUITS[name], RANKS, program))
    headers = {rank: RankHeader(rank, 0, "host0") for rank in range(RANKS)}
    return JobTrace({}, headers, {rank: Ended("finalize") for rank in range(RANKS)}, events)


@pytest.mark.parametrize("name", ["aries, mailboxes", "gemini, scarce", "aries, hosts"])
def test_every_operation_is_an_arrow_between_its_ranks(name: str) -> None:
    trace = job_trace(name)
    told, every = playback(trace), operations(trace.events).all
    assert len(told["messages"]) == len(every)
    assert Counter(each["internal"] for each in told["messages"])[False] == sum(
        is_of_program(each) for each in every
    )
    steps, first = told["steps"], {}
    for arrow in told["arrows"]:
        first.setdefault(arrow["message"], arrow)
        if arrow["end"] is None:  # a rank may end before the last message of the end has come
            assert told["messages"][arrow["message"]]["internal"]
        else:
            assert arrow["start"] <= arrow["end"]
    assert set(first) == set(range(len(every)))
    for place, each in enumerate(every):
        ways = (each.target, each.source) if each.name == "get" else (each.source, each.target)
        assert (first[place]["from"], first[place]["to"]) == ways
        assert steps[first[place]["start"]]["lane"] == each.source
        if each.is_message and first[place]["end"] is not None:
            assert steps[first[place]["end"]]["lane"] == each.target
    places = [step["place"] for step in steps]
    assert places == sorted(set(places))


def test_handlers_and_what_waits() -> None:
    told = playback(job_trace("aries, mailboxes"))
    steps, handlers = told["steps"], [each for each in told["calls"] if each["name"] == "ask"]
    far = [each for each in handlers if each["of"].startswith("AMRequestMedium from rank 0, 3 B")]
    assert [each["lane"] for each in far] == [1]
    (only,) = far
    assert "runs ask" in steps[only["start"]]["text"]
    assert "ask has returned" in steps[only["end"]]["text"]
    waits = [each for each in told["waiting"] if each["text"] == "ask from rank 0, 3 B"]
    (arrives,) = [each for each in waits if each["lane"] == 1]
    assert (arrives["queue"], arrives["end"]) == ("handlers", only["start"])
    (get,) = [each for each in told["waiting"] if each["text"] == "get from rank 1, 10001 B"]
    assert (get["queue"], get["lane"]) == ("transfers", 0)
    assert told["queues"] == [
        ["handlers", "messages for handlers"],
        ["transfers", "own puts and gets"],
    ]
    families = [each["name"] for each in told["families"]]
    assert families == ["request", "reply", "put", "get"]
    assert "2 posts" in " ".join(step["text"] for step in steps)


def test_a_message_that_no_handler_has_run_for() -> None:
    """It is on its way to the end of the trace, and a page says so."""
    trace = job_trace("aries, mailboxes")
    cut = next(i for i, event in enumerate(trace.events) if event.name == "HANDLER")
    told = playback(trace._replace(events=trace.events[:cut]))
    lost = [arrow for arrow in told["arrows"] if arrow["end"] is None]
    assert len(lost) == len([each for each in told["waiting"] if each["queue"] == "handlers"]) >= 1
    late = playback(trace._replace(events=trace.events[cut:]))
    assert any("whose sender is not traced" in each for each in late["left_out"])


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 0, "3 ranks, 0 messages, 0 calls, "),
        (["--gasnet", "--count", "2"], 0, "0 calls, 2 operations of GASNet, "),
        (["--handler", "ask"], 0, "0 calls, 6 operations of GASNet, "),
        (["--rank", "0", "--peer", "0"], 0, "1 ranks, 0 messages, 0 calls, 2 operations"),
        (["--handler", "nobody"], 1, "no such operation"),
        (["--tag", "3"], 1, "no such message"),
    ],
)
def test_the_command(options: list[str], code: int, said: str, tmp_path: Path) -> None:
    trace = job_trace("aries, mailboxes")
    for rank, header in trace.headers.items():
        writer = TraceWriter(str(tmp_path / "run"), header, 10_000)
        writer.write([each for each in trace.events if each.rank == rank])
        writer.close("finalize")
    page = tmp_path / "page.html"
    done = CliRunner().invoke(ompy_trace, [str(tmp_path / "run"), "--play", str(page), *options])
    assert (done.exit_code, said in done.output) == (code, True), done.output
    assert page.exists() == (code == 0)
