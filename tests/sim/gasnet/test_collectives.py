"""Collectives and teams over every conduit, against a model; what they refuse; what is seen."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ompy.engine.virtual_engine import RankFailed
from ompy.gasnet import (
    COLL_INVALID_HANDLE,
    TEAM_ALL,
    BadArgument,
    CollectiveMismatch,
    CollFlag,
    Gasnet,
    NotInitialised,
)
from ompy.gasnet.collective.coll_calls import KINDS as CALLS
from ompy.gasnet.collective.coll_calls import Call, Kind, call_of
from ompy.trace.drawing.mermaid import mermaid
from ompy.trace.drawing.operation_sequence import arrange
from ompy.trace.exporting.chrome_operations import spans
from ompy.trace.operations import operations

from tests.support.effort import THOROUGH, effort
from tests.support.gasnet_collectives import (
    PLAIN,
    SEGMENT,
    begin,
    every_call,
    random_collectives,
    team_barriers,
)
from tests.support.gasnet_programs import raises
from tests.support.gasnet_worlds import CHOSEN, CONDUITS, Under, run, traced

SINGLE = CollFlag.SINGLE
LOOPBACKS = ("loopback", "loopback, scarce")


@pytest.mark.parametrize("ranks", range(1, 6))
@pytest.mark.parametrize("name", CHOSEN)
def test_random_calls(name: str, ranks: int) -> None:
    quick = name in LOOPBACKS
    if not quick and ranks != 3 and not THOROUGH:
        pytest.skip("the nightly run has all numbers of ranks over the NIC")
    for seed in range(effort(1)):
        program = partial(random_collectives, seed=100 * ranks + seed, rounds=5 if quick else 2)
        run(CONDUITS[name], ranks, program, seed=seed)


@pytest.mark.parametrize("name", CHOSEN if THOROUGH else ["loopback"])
def test_every_call(name: str) -> None:
    run(CONDUITS[name], 3, every_call, seed=1)


@pytest.mark.parametrize("name", CHOSEN if THOROUGH else ["loopback", "gemini, smsg"])
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_barriers_of_teams(name: str, ranks: int) -> None:
    run(CONDUITS[name], ranks, team_barriers, seed=ranks)


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_bad_nic(hosts: int) -> None:
    """Late, refusing, with little of everything."""
    nic = {"late": 40, "refuse": 30, "posts": 2}
    under = Under("aries", {"networkdepth": 1, "num_pd": 1}, nic, hosts=hosts)
    run(under, 3, partial(random_collectives, seed=4, rounds=2), seed=4)


# --- what the sync flags promise


@pytest.mark.parametrize("size", [8, 3000])
@pytest.mark.parametrize("enter", [CollFlag.IN_MYSYNC, CollFlag.IN_ALLSYNC])
def test_nothing_moves_before_it_may(enter: CollFlag, size: int) -> None:
    """With MYSYNC not before this member has entered, with ALLSYNC not before all have."""

    def program(gasnet: Gasnet) -> None:
        begin(gasnet)
        me, memory = gasnet.mynode(), gasnet.segment().memory
        memory[:size] = bytes([me + 1]) * size
        flags = enter | CollFlag.OUT_MYSYNC | SINGLE
        late = 2  # a leaf, right below the root
        handle = None
        if me != late:
            handle = gasnet.coll_broadcast_nb(TEAM_ALL, 4096, 0, 0, size, flags)
        gasnet.barrier_notify()
        for _ in range(50):
            gasnet.am_poll()
            if handle is None or enter is CollFlag.IN_ALLSYNC:
                assert not any(memory[4096 : 4096 + size])
        gasnet.barrier_wait()
        if handle is None:
            assert not any(memory[4096 : 4096 + size])
            handle = gasnet.coll_broadcast_nb(TEAM_ALL, 4096, 0, 0, size, flags)
        gasnet.coll_wait_sync(handle)
        assert memory[4096 : 4096 + size] == b"\x01" * size
        gasnet.barrier()

    run(CONDUITS["loopback"], 3, program)
    run(CONDUITS["aries, smsg"], 3, program)


def test_all_have_it_with_out_allsync() -> None:
    def program(gasnet: Gasnet) -> None:
        begin(gasnet)
        me, ranks = gasnet.mynode(), gasnet.nodes()
        for size in (8, 3000):
            gasnet.segment().memory[:size] = bytes([me + 1]) * size
            flags = CollFlag.IN_MYSYNC | CollFlag.OUT_ALLSYNC | SINGLE
            gasnet.coll_broadcast(TEAM_ALL, 4096, size % ranks, 0, size, flags)
            for node in range(ranks):
                room = bytearray(size)
                gasnet.get(room, node, 4096)
                assert room == bytes([size % ranks + 1]) * size
            gasnet.barrier()

    for seed in range(effort(4)):
        run(CONDUITS["loopback"], 5, program, seed=seed)


def test_a_member_that_waits_for_something_else_goes_on_with_it() -> None:
    """An inner member of a tree hands on what it gets, out of a barrier, a get, a block_until."""

    def program(gasnet: Gasnet) -> None:
        heard: list[int] = []

        def tell(_token: Any, _payload: memoryview) -> None:
            heard.append(1)

        gasnet.init()
        gasnet.attach([tell], segment_size=SEGMENT)
        gasnet.coll_init()
        me = gasnet.mynode()
        room = bytearray(3000)
        handle = gasnet.coll_broadcast_nb(TEAM_ALL, room, 0, room, 3000, PLAIN)
        if me == 3:  # below 2
            gasnet.coll_wait_sync(handle)
            gasnet.am_request_short(2, tell)
        if me == 2:
            gasnet.block_until(lambda: heard)
        gasnet.barrier()
        if me != 3:
            gasnet.coll_wait_sync(handle)

    run(CONDUITS["loopback"], 4, program)


def test_aggregated_ones_are_synced_with_the_next() -> None:
    def program(gasnet: Gasnet) -> None:
        begin(gasnet)
        me, more = gasnet.mynode(), PLAIN | CollFlag.AGGREGATE
        rooms = [bytearray(3000) for _ in range(4)]
        for room in rooms[:3]:
            made = gasnet.coll_broadcast_nb(TEAM_ALL, room, 1, b"a" * 3000, 3000, more)
            assert made is COLL_INVALID_HANDLE
            gasnet.coll_wait_sync(made)
        arguments = (TEAM_ALL, rooms[3], 1, b"a" * 3000, 3000)
        raises(BadArgument, gasnet.coll_broadcast, *arguments, more)
        handle = gasnet.coll_broadcast_nb(*arguments, PLAIN)
        assert me or not handle.complete
        gasnet.coll_wait_sync(handle)
        assert rooms == [b"a" * 3000] * 4
        gasnet.barrier()

    run(CONDUITS["loopback"], 3, program)


# --- what is refused


DIFFERENT = {  # what two of the members call, and a word of each in the error
    "another root": (("broadcast", 0, 8, PLAIN), ("broadcast", 1, 8, PLAIN)),
    "both wait": (("broadcast", 1, 8, PLAIN), ("broadcast", 0, 8, PLAIN)),
    "another size": (("gather_all", 0, 8, PLAIN), ("gather_all", 0, 16, PLAIN)),
    "another kind": (("exchange", 0, 8, PLAIN), ("gather_all", 0, 8, PLAIN)),
    "one sends, one waits": (("scatter", 0, 8, PLAIN), ("gather", 0, 8, PLAIN)),
    "large ones": (("gather", 0, 3000, PLAIN), ("scatter", 1, 3000, PLAIN)),
    "other flags": (
        ("broadcast", 0, 8, PLAIN),
        ("broadcast", 0, 8, CollFlag.IN_ALLSYNC | CollFlag.OUT_MYSYNC | CollFlag.LOCAL),
    ),
    "other addresses": (
        ("broadcast", 0, 8, CollFlag.IN_MYSYNC | CollFlag.OUT_MYSYNC | SINGLE),
        ("broadcast", 0, 8, PLAIN),
    ),
}


@pytest.mark.parametrize("which", DIFFERENT)
def test_different_calls_are_an_error_that_names_both(which: str) -> None:
    """For every member, and for the team from then on; another team is as it was."""

    def program(gasnet: Gasnet) -> list[str]:
        begin(gasnet)
        me = gasnet.mynode()
        other = gasnet.coll_team_create(range(gasnet.nodes()))
        kind, root, size, flags = DIFFERENT[which][me % 2]
        room: list[Any] = [bytearray(b"\xee" * (size * 3)), bytes(size * 3)]
        if flags & SINGLE:
            room = [0, 4096]
        roots = {"broadcast": (room[0], root, room[1]), "scatter": (room[0], root, room[1])}
        sides = roots.get(kind, (root, *room) if kind == "gather" else tuple(room))
        said = []
        try:
            getattr(gasnet, f"coll_{kind}")(TEAM_ALL, *sides, size, flags)
        except CollectiveMismatch as problem:
            said.append(str(problem))
        # with IN_MYSYNC a member may have done its part before others come: it hears later
        for _ in range(20):
            gasnet.coll_barrier(other)
        arguments = (TEAM_ALL, bytearray(3), b"a", 1, PLAIN)
        said.append(raises(CollectiveMismatch, gasnet.coll_gather_all, *arguments))
        raises(CollectiveMismatch, gasnet.coll_exchange, TEAM_ALL, b"", b"", 0, PLAIN)
        if not flags & SINGLE and kind != "broadcast":
            assert room[0] == bytes(size * 3) or b"\xee" in room[0]
        gasnet.barrier()
        found = bytearray(3)
        gasnet.coll_gather_all(other, found, bytes([me]), 1, PLAIN)
        assert found == bytes(range(3))
        gasnet.barrier()
        return said

    for seed in range(effort(3)):
        for said in run(CONDUITS["loopback"], 3, program, seed=seed):
            (text,) = set(said)
            first, second = (call[0] for call in DIFFERENT[which])
            assert first in text
            assert second in text
            assert "collective 1 of TEAM_ALL" in text
            assert "rank 1 calls" in text


def test_teams_that_are_not_made_alike() -> None:
    def program(gasnet: Gasnet) -> str:
        begin(gasnet)
        nodes = [0, 1] if gasnet.mynode() else [1, 0]
        return raises(CollectiveMismatch, gasnet.coll_team_create, nodes)

    for said in run(CONDUITS["loopback"], 2, program):
        assert "ranks 0, 1" in said
        assert "ranks 1, 0" in said


def test_wrong_arguments() -> None:
    def program(gasnet: Gasnet) -> None:
        foreign.append(gasnet)
        gasnet.init()
        raises(NotInitialised, gasnet.coll_init)
        gasnet.attach(segment_size=SEGMENT)
        raises(BadArgument, gasnet.coll_barrier, TEAM_ALL)
        raises(BadArgument, gasnet.coll_init, [1, 2])
        gasnet.coll_init([1, 1])
        raises(BadArgument, gasnet.coll_init)
        me, room, bits = gasnet.mynode(), bytearray(16), CollFlag
        both = bits.IN_MYSYNC | bits.OUT_MYSYNC
        for flags in (0, both, both | SINGLE | bits.LOCAL, PLAIN | bits.IN_NOSYNC, 1 << 9, "x"):
            raises(BadArgument, gasnet.coll_gather_all, TEAM_ALL, room, b"a", 1, flags)
        for root in (-1, 2, None):
            raises(BadArgument, gasnet.coll_broadcast, TEAM_ALL, room, root, room, 1, PLAIN)
        hint = PLAIN | bits.DST_IN_SEGMENT
        for dst, src, size, flags in (
            (room, room, 17, PLAIN),
            (room, room, -1, PLAIN),
            (bytes(16), room, 1, PLAIN),
            (None, room, 1, PLAIN),
            (room, None, 1, PLAIN),
            (SEGMENT - 1, room, 1, PLAIN),
            (room, SEGMENT, 1, PLAIN),
            (room, 0, 1, both | SINGLE),
            (0, SEGMENT, 1, both | SINGLE),
            (-1, 0, 1, both | SINGLE),
            (room, 0, 1, hint),
        ):
            raises(BadArgument, gasnet.coll_exchange, TEAM_ALL, dst, src, size, flags)
        team = gasnet.coll_team_split(TEAM_ALL, me, 0)
        assert team is not None
        for wrong in (None, 0, foreign[1 - me] if len(foreign) > 1 else "all", team.nodes):
            raises(BadArgument, gasnet.coll_barrier, wrong)
        for color in (-1, "a"):
            raises(BadArgument, gasnet.coll_team_split, TEAM_ALL, color, 0)
        for nodes in ([], [1 - me], [me, me], [me, 2], [me, "a"]):
            raises(BadArgument, gasnet.coll_team_create, nodes)
        raises(BadArgument, team.rank2node, 1)
        raises(BadArgument, team.node2rank, 1 - me)
        raises(BadArgument, gasnet.coll_team_free, TEAM_ALL)
        handle = gasnet.coll_broadcast_nb(TEAM_ALL, room, 0, room, 1, PLAIN)
        if not me:
            gasnet.coll_barrier_notify(team)
            raises(BadArgument, gasnet.coll_team_free, team)
            gasnet.coll_barrier_wait(team)
        raises(BadArgument, gasnet.coll_wait_sync_all, [handle, handle])
        raises(BadArgument, gasnet.coll_wait_sync_all, (handle,))
        gasnet.coll_wait_sync(handle)
        raises(BadArgument, gasnet.coll_wait_sync, handle)
        raises(BadArgument, gasnet.wait_syncnb, handle)
        raises(BadArgument, gasnet.coll_try_sync, 5)
        gasnet.coll_wait_sync(COLL_INVALID_HANDLE)
        assert gasnet.coll_wait_sync_some([COLL_INVALID_HANDLE]) == []
        gasnet.coll_team_free(team)
        raises(BadArgument, gasnet.coll_barrier, team)
        gasnet.barrier()

    foreign: list[Gasnet] = []
    run(CONDUITS["loopback"], 2, program)


def test_no_collectives_in_handlers() -> None:
    def program(gasnet: Gasnet) -> list[str]:
        said: list[str] = []

        def ask(_token: Any, _payload: memoryview) -> None:
            said.append(raises(BadArgument, gasnet.coll_barrier, TEAM_ALL))
            said.append(raises(BadArgument, gasnet.coll_team_create, [0, 1]))
            arguments = (TEAM_ALL, bytearray(2), b"a", 1, PLAIN)
            said.append(raises(BadArgument, gasnet.coll_gather_all, *arguments))

        gasnet.init()
        gasnet.attach([ask], segment_size=SEGMENT)
        gasnet.coll_init()
        gasnet.am_request_short(1 - gasnet.mynode(), ask)
        gasnet.block_until(lambda: said)
        gasnet.barrier()
        return said

    for said in run(CONDUITS["loopback"], 2, program):
        assert len(said) == 3
        assert all("handler" in line for line in said)


# --- what is seen


def test_who_hangs_says_for_whom() -> None:
    def program(gasnet: Gasnet) -> list[str]:
        begin(gasnet)
        me, lines = gasnet.mynode(), []
        if me:
            handle = gasnet.coll_broadcast_nb(TEAM_ALL, bytearray(8), 0, None, 8, PLAIN)
            gasnet.coll_barrier_notify(TEAM_ALL)
            lines = gasnet.waiting()
        gasnet.barrier()
        if not me:
            handle = gasnet.coll_broadcast_nb(TEAM_ALL, bytearray(8), 0, bytes(8), 8, PLAIN)
            gasnet.coll_barrier_notify(TEAM_ALL)
        gasnet.coll_wait_sync(handle)
        gasnet.coll_barrier_wait(TEAM_ALL)
        gasnet.barrier()
        return lines

    assert run(CONDUITS["loopback"], 2, program)[1] == [
        "collective 1 of TEAM_ALL, broadcast: nothing has come from rank 0 yet",
        "a barrier of TEAM_ALL: nothing has come from rank 0 yet",
    ]


def test_a_trace_has_them() -> None:
    def program(gasnet: Gasnet) -> None:
        begin(gasnet)
        gasnet.coll_broadcast(TEAM_ALL, bytearray(8), 1, bytes(8), 8, PLAIN)
        team = gasnet.coll_team_split(TEAM_ALL, 0, gasnet.mynode())
        assert team is not None
        gasnet.coll_exchange(team, bytearray(2), b"ab", 1, PLAIN)
        gasnet.barrier()

    events = traced(CONDUITS["aries, smsg"], 2, program)
    found = operations(events)
    mine = [each for each in found.all if each.source == 0 and each.way.startswith("coll")]
    assert [(each.name.partition("(")[0], each.target, each.size) for each in mine] == [
        ("broadcast", 1, 8),
        ("team_split", 0, 16),
        ("exchange", 0, 1),
    ]
    assert mine[0].name == "broadcast(image 1, 8 bytes, IN_MYSYNC | OUT_MYSYNC | LOCAL)"
    assert mine[2].way == "collective 1 of the team of ranks 0, 1"
    assert all(post.done is not None for each in mine for post in each.posts)
    names = {found.handler_name(each) for each in found.all if each.is_message}
    assert "collective" in names
    drawn = mermaid(arrange(mine, found, {}))
    assert drawn.count("broadcast(image 1, 8 bytes") == 1
    assert "collective 1 of the team of ranks 0, 1 is over" in drawn
    shown = [span["name"] for span in spans(found) if span["args"].get("way") == mine[2].way]
    assert len(shown) == 2, "one for each member"


def test_a_trace_file_has_them(tmp_path: Path) -> None:
    """GASNET_TRACEFILE, under GASNet's letter for collectives."""

    def program(gasnet: Gasnet) -> None:
        begin(gasnet)
        gasnet.coll_gather(TEAM_ALL, 1, bytearray(4), b"ab", 2, PLAIN)
        gasnet.barrier()

    settings = {"tracefile": str(tmp_path / "trace"), "tracemask": "W"}
    run(Under("aries", settings), 2, program)
    for rank in range(2):
        lines = (tmp_path / f"trace.{rank}").read_text().splitlines()
        begun, over = [line.partition("> (W) ")[2] for line in lines]
        assert begun.startswith("COLL: peer=1 call=gather(image 1, 2 bytes, IN_MYSYNC")
        assert over.startswith("COLL_DONE")


@pytest.mark.parametrize("kind", CALLS)
def test_a_call_survives_its_words(kind: Kind) -> None:
    for call in (Call(kind, 1 << 7 | 2 | 16, 3, 1 << 40), Call(kind, 1 | 8 | 64, 0, 5, 1 << 33, 7)):
        words = call.words()
        assert all(-(1 << 31) <= word < 1 << 31 for word in words)
        assert call_of(words) == call


def test_a_peer_that_is_gone_is_an_error() -> None:
    """A failed post ends the collective, and the team's next one is no wrong data."""

    def program(gasnet: Gasnet) -> None:
        begin(gasnet)
        flags = CollFlag.IN_NOSYNC | CollFlag.OUT_MYSYNC | SINGLE
        gasnet.coll_exchange(TEAM_ALL, 0, 8192, 3000, flags)

    with pytest.raises(RankFailed, match="failed"):
        run(Under("aries", {}, {"fail": 100}), 2, program)
