"""GASNet's operations in traces: messages of both sides, credits, the ways of puts and gets."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from ompy.cli.tracing import trace_gasnet
from ompy.gasnet import Gasnet
from ompy.trace.drawing.mermaid import mermaid
from ompy.trace.drawing.operation_sequence import arrange
from ompy.trace.drawing.svg import svg
from ompy.trace.exporting.chrome import chrome
from ompy.trace.operations import Operation, Operations, is_of_program, operations
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace, RankHeader

from tests.support.gasnet_worlds import CONDUITS, run, traced

PAGE = 4096
OVER_THE_NIC = [name for name in CONDUITS if not name.startswith("loopback")]
SHOTS = 7
# size and offset of puts and gets over the NIC, and the way each takes there (seed: defaults of
# the cutovers), the source not in the segment
PUTS = {
    (100, 0): "FMA put, unregistered",
    (4096, 0): "FMA put, unregistered",
    (4097, 0): "BTE put, bounce buffer",
    (8193, 0): "BTE put, registered",
}
GETS = {
    (100, 0): "FMA get, immediate buffer",
    (2000, 0): "FMA get, bounce buffer",
    (2, 1): "FMA get, immediate buffer, 4 bytes read",
    (8192, 0): "BTE get, bounce buffer",
    (8196, 0): "BTE get, registered",
    (10_001, 3): "split: FMA get, immediate buffer; BTE get, registered, 10004 bytes read",
}


def program(gasnet: Gasnet) -> Any:
    """Messages of all kinds, to all ranks, with and without replies; then puts and gets."""
    heard: list[int] = []

    def ask(token: Any, payload: memoryview, number: int) -> None:
        if number % 2:
            gasnet.am_reply_medium(token, answer, payload[:100], number)
        else:
            heard.append(-1)

    def answer(_token: Any, _payload: memoryview, number: int) -> None:
        heard.append(number)

    gasnet.init()
    gasnet.attach([ask, answer], segment_size=8 * PAGE)
    ranks, me = gasnet.nodes(), gasnet.mynode()
    for number in range(SHOTS):
        for node in range(ranks):
            gasnet.am_request_short(node, ask, 0)
            gasnet.am_request_medium(node, ask, b"abc", number)
            gasnet.am_request_long(node, ask, bytes(900 * number), 0, number)
    gasnet.am_request_long_async((me + 1) % ranks, ask, bytes(2000), 0, 1)
    even, odd = SHOTS + 2 * (SHOTS - SHOTS // 2), 2 * (SHOTS // 2)
    gasnet.block_until(lambda: len(heard) == ranks * (even + odd) + 1)
    gasnet.barrier()
    peer = (me + 1) % ranks
    for size, offset in PUTS:
        gasnet.put(peer, offset, bytes(size))
    for size, offset in GETS:
        gasnet.get(bytearray(size), peer, offset)
    gasnet.memset(peer, 0, 1, 10)
    gasnet.put_val(me, 0, 7)
    gasnet.barrier()
    return sorted(heard)


@cache
def events_of(name: str) -> tuple[Event, ...]:
    return tuple(traced(CONDUITS[name], 3, program))


def found_in(name: str) -> Operations:
    return operations(events_of(name))


def job_trace(name: str) -> JobTrace:
    headers = {rank: RankHeader(rank, 0, "host0") for rank in range(3)}
    return JobTrace({}, headers, {}, list(events_of(name)))


@pytest.mark.parametrize("name", OVER_THE_NIC)
def test_every_message_has_its_handler_and_every_reply_its_request(name: str) -> None:
    sent = [each for each in found_in(name).all if each.is_message and is_of_program(each)]
    far = [each for each in sent if each.source != each.target]
    requests = [each for each in far if each.name.startswith("AMRequest")]
    assert Counter(each.name for each in requests) == {
        "AMRequestShort": 3 * 2 * SHOTS,
        "AMRequestMedium": 3 * 2 * SHOTS,
        "AMRequestLong": 3 * 2 * SHOTS,
        "AMRequestLongAsync": 3,
    }
    for each in far:
        assert each.began is not None, each
        assert each.handled is not None, each
        assert each.returned is not None, each
        assert each.began.time <= each.handled.time <= each.returned.time
        assert (each.began.rank, each.handled.rank) == (each.source, each.target)
    replies = [each for each in far if each.name == "AMReplyMedium"]
    assert len(replies) == 3 * (2 * 2 * (SHOTS // 2) + 1)
    for each in replies:
        asked = each.answers
        assert asked is not None
        assert (asked.source, asked.target) == (each.target, each.source)
        assert asked.answered is each
        assert asked.size >= each.size
        assert asked.hidden is None  # its credit comes back with the reply
    unanswered = [each for each in requests if each.answered is None]
    assert all(each.hidden is not None for each in unanswered)


@pytest.mark.parametrize("name", OVER_THE_NIC)
def test_credits_are_taken_and_come_back(name: str) -> None:
    events = [event for event in events_of(name) if event.name == "CREDIT"]
    left: dict[tuple[int, int], int] = {}
    for event in events:
        fields = dict(event.fields)
        pair = (event.rank, fields["peer"])
        if fields["what"] == "taken":
            assert fields["left"] == left.get(pair, fields["left"] + 1) - 1
        elif fields["what"] in ("back", "replied"):
            assert fields["left"] == left[pair] + fields["count"]
        else:
            continue
        left[pair] = fields["left"]
    assert left
    stalls = [event for event in events if dict(event.fields)["what"] == "stall"]
    assert bool(stalls) == any(each.stalled is not None for each in found_in(name).all)
    if "scarce" in name:  # one credit: whoever sends two at once has to wait
        assert stalls


@pytest.mark.parametrize("name", ["gemini, smsg", "aries, mailboxes", "aries, hosts"])
def test_puts_and_gets_say_which_way_they_took(name: str) -> None:
    by_rank: dict[int, list[Operation]] = {}
    for each in found_in(name).all:
        if each.name in ("put", "get") and each.source != each.target:
            by_rank.setdefault(each.source, []).append(each)
    for rank, mine in by_rank.items():
        near = "hosts" in name and rank == 1  # ranks 0 and 2 are of one host: 2 puts to 0
        last = mine[-len(PUTS) - len(GETS) :]
        ways = [each.way for each in last]
        if "hosts" in name and rank == 2:
            assert ways == ["PSHM"] * len(last)
        else:
            wanted = [*PUTS.values(), *GETS.values()]
            assert [_plain(way) for way in ways] == [_plain(way) for way in wanted], near
            assert all(post.done is not None for each in last for post in each.posts)


def _plain(way: str) -> str:
    """Gemini asks an aligned local address of a get: then its middle goes by bounce buffers."""
    return "split" if way.startswith("split") else way


def test_what_needs_nobody_else() -> None:
    found = found_in("aries, neighbours")
    own = [each for each in found.all if each.source == each.target]
    assert {each.way for each in own} == {"own rank", "own memory"}
    assert {each.way for each in found.all if each.name == "put"} == {"PSHM", "own memory"}
    names = {found.handler_name(each) for each in found.all if each.is_message}
    assert names == {"ask", "answer", "barrier", "memset", "memset done", "exit barrier"}


def test_a_trace_changes_nothing_and_is_the_same_for_the_same_seed() -> None:
    under = CONDUITS["aries, mailboxes"]
    assert run(under, 3, program, seed=4) == run(under, 3, program, seed=4)
    first, second, third = (traced(under, 3, program, seed=seed) for seed in (4, 4, 5))
    assert first == second
    assert first != third


def test_listing_and_what_is_chosen() -> None:
    found = found_in("aries, mailboxes")
    chosen = trace_gasnet.choose_operations(found, None, None, None, None)
    lines = trace_gasnet.listing(chosen, found).splitlines()
    assert len(lines) == 1 + len(chosen)
    assert any("AMRequestShort ask: mailbox" in line and "credits left" in line for line in lines)
    assert any("put: FMA put, unregistered, complete after" in line for line in lines)
    assert not any("barrier" in line for line in lines)
    barriers = trace_gasnet.choose_operations(found, 0, None, "barrier", None)
    assert barriers
    assert all(0 in (each.source, each.target) for _, each in barriers)
    assert barriers == trace_gasnet.choose_operations(
        found, 0, None, str(barriers[0][1].handler), None
    )
    (only,) = trace_gasnet.choose_operations(found, None, None, None, 3)
    assert only == chosen[2]
    for wrong in ({"handler": "nobody"}, {"number": 0}, {"number": 10_000}, {"rank": 7}):
        options: dict[str, Any] = dict.fromkeys(("rank", "peer", "handler", "number")) | wrong
        with pytest.raises(Exception, match="no such operation"):
            trace_gasnet.choose_operations(found, **options)
    with pytest.raises(Exception, match="at most can be drawn"):
        trace_gasnet.draw(job_trace("aries, mailboxes"), found, chosen)


@pytest.mark.parametrize("name", ["gemini, scarce", "aries, mailboxes", "aries, neighbours"])
def test_diagrams(name: str) -> None:
    found = found_in(name)
    headers = {rank: RankHeader(rank, 0, "host0") for rank in range(3)}
    chosen = [each for _, each in trace_gasnet.choose_operations(found, None, None, None, None)]
    for some in ([chosen[0]], chosen[:20], chosen[-20:], [chosen[-1]]):
        diagram = arrange(some, found, headers)
        rows = [
            (point.rank, point.row) for line in diagram.lines for point in (line.start, line.end)
        ]
        assert all(0 <= row < diagram.rows for _, row in rows)
        for line in diagram.lines:  # causes above effects
            assert line.start.row < line.end.row
        by_rank: dict[int, list[tuple[int, int]]] = {}
        for line in diagram.lines:
            by_rank.setdefault(line.start.rank, []).append((line.start.row, line.start.time))
        for points in by_rank.values():
            times = [time for _, time in sorted(points)]
            assert all(first <= second for first, second in pairwise(times))
        assert "<svg" in svg(diagram)
        assert mermaid(diagram).startswith("sequenceDiagram")


def test_a_large_get_is_thinned_out() -> None:
    def big(gasnet: Gasnet) -> None:
        gasnet.init()
        gasnet.attach([], segment_size=4096 * PAGE)
        if gasnet.mynode() == 0:
            gasnet.get(bytearray(12 << 20), 1, 0)
        gasnet.barrier()

    found = operations(traced(CONDUITS["aries, smsg"], 2, big))
    (get,) = [each for each in found.all if each.name == "get"]
    assert get.way == "split: 12 x BTE get, registered"
    diagram = arrange([get], found, {})
    assert [text for _, text in diagram.gaps] == ["5 more posts, 5 MiB"]
    assert len(diagram.lines) == 7


@pytest.mark.parametrize("name", ["aries, mailboxes", "gemini, hosts"])
def test_chrome(name: str) -> None:
    made = json.loads(chrome(job_trace(name)))["traceEvents"]
    begun = {e["id"]: e for e in made if e["ph"] == "b"}
    ended = {e["id"]: e for e in made if e["ph"] == "e"}
    assert set(begun) == set(ended)
    assert len(begun) > 100
    assert all(begun[name]["ts"] <= ended[name]["ts"] for name in begun)
    places = {(e["pid"], e["tid"], e["ts"]) for e in made if e["ph"] == "X"}
    arrows = [event for event in made if event["ph"] in "sf"]
    assert set(Counter(event["id"] for event in arrows).values()) == {2}
    assert {(e["pid"], e["tid"], e["ts"]) for e in arrows} <= places
    assert {"AMRequestLong", "AMReplyMedium", "credit"} <= {e["name"] for e in arrows}
