"""Findings from records written by hand."""

from __future__ import annotations

import pytest
from ompy.check.analysis import findings_of
from ompy.check.analysis.matching import messages_of
from ompy.check.analysis.order import Order
from ompy.check.logs import Record
from ompy.check.signatures import OBJECT
from ompy.data.constants import ANY_SOURCE, PROC_NULL, ROOT

from tests.unit.check.records import FILE, coll, found_in, record, recv, send, wait

BRIDGE = 2  # number of the intercommunicator
INTS = ((("i4", 4),), 1)
LONG = ((("f8", 9),), 1)
COLUMN = ((("f8", 1),), 4)
PAIRS = ((("i4", 1), ("f8", 1)), 2)


def kinds(*programs, **how):
    return [one.kind for one in found_in(*programs, **how)]


def lines(found):
    return {site["line"] for site in found.sites}


# --- messages


def test_a_message_as_it_should_be():
    assert not found_in([send(1)], [recv(0, 0)])


@pytest.mark.parametrize(
    ("sent", "received", "kind"),
    [
        ((((("f8", 4),), 1)), INTS, "type-mismatch"),
        (LONG, (((("f8", 4),), 1)), "count-mismatch"),
        ((((("f8", 4),), 1)), LONG, ""),
        (COLUMN, (((("f8", 4),), 1)), ""),
        (PAIRS, ((("i4", 1), ("f8", 1), ("i4", 1), ("f8", 1)), 1), ""),
        (PAIRS, ((("f8", 1), ("i4", 1)), 2), "type-mismatch"),
        (OBJECT, (((("f8", 4),), 1)), "type-mismatch"),
        (OBJECT, (((("u1", 400),), 1)), ""),
        (((("BYTE1", 21),), 1), OBJECT, ""),
        (((("f8", 21),), 1), OBJECT, "type-mismatch"),
        (((("u1", 4),), 1), ((("BYTE1", 4),), 1), ""),
        (None, INTS, ""),
        (((("PACKED1", 32),), 1), ((("f8", 4),), 1), ""),
        (((("PACKED1", 12),), 1), PAIRS, ""),
        (PAIRS, ((("PACKED1", 30),), 1), ""),
        (((("PACKED1", 40),), 1), ((("f8", 4),), 1), "count-mismatch"),
        (PAIRS, ((("PACKED1", 20),), 1), "count-mismatch"),
    ],
)
def test_both_ends_of_a_message(sent, received, kind):
    found = found_in([send(1, signature=sent)], [recv(0, 0, signature=received)])
    assert [one.kind for one in found] == ([kind] if kind else [])
    if kind:
        assert lines(found[0]) == {1, 101}


def test_a_send_that_was_refused_is_none():
    """The program has caught the error."""
    assert not found_in([send(1, tag=-5), ("unsent", 1, "comm.Send"), send(1)], [recv(0, 0)])


def test_messages_of_one_tag_match_in_order():
    """The second of two is the wrong one, although the receives are completed the other way."""
    found = found_in(
        [send(1), send(1, signature=INTS)],
        [recv(0, None, request=7), recv(0, None, request=8), ("got", 8, (0, 0, 16, True, -1)),
         ("got", 7, (0, 0, 32, True, -1)), wait(7, 8)],
    )  # fmt: skip
    assert [one.kind for one in found] == ["type-mismatch"]
    assert lines(found[0]) == {2, 102}


def test_nothing_is_said_behind_a_receive_of_which_nothing_is_known():
    records = {
        0: record(0, 2, send(1), send(1, signature=INTS)),
        1: record(1, 2, recv(ANY_SOURCE, None, request=7), recv(0, 0, signature=LONG)),
    }
    messages = messages_of(records)
    assert not messages.pairs
    assert not messages.unmatched


def test_a_message_that_nobody_receives():
    found = found_in([send(1, 5), send(1)], [recv(0, 0)])
    assert [(one.kind, lines(one)) for one in found] == [("leak", {1})]


def test_of_a_rank_that_died_nothing_is_unreceived():
    assert not kinds([send(1, 5)], [], ends=False, went_well=False)


@pytest.mark.parametrize("more", [[], [send(0)]])
def test_an_error_that_a_rank_has_caught_before_the_job_was_stopped(more):
    """It may have tried something: it is at fault only if it has done nothing since."""
    raised = ("raised", "invalid-argument", "comm.Send: it is wrong", ((1, "comm.Send"),))
    records = {0: record(0, 1, send(0), raised, *more, ends=False)}
    found = findings_of(records, None, went_well=False, stopped=True)
    assert [one.kind for one in found] == ([] if more else ["invalid-argument"])
    assert len(findings_of(records, None, went_well=False)) == 1


def bridge(rank, *events):
    """The record of a rank of an intercommunicator of ranks 0, 1 and ranks 2, 3."""
    made = record(rank, 4, *events)
    own, others = ([0, 1], [2, 3]) if rank < 2 else ([2, 3], [0, 1])
    made.take_event(("comm", BRIDGE, "bridge", "bridge", rank % 2, others, own))
    made.events = [
        (*event[:3], BRIDGE, *event[4:]) if event[0] in {"send", "recv"} else event
        for event in made.events
    ]
    return made


def test_the_two_groups_of_an_intercommunicator_have_the_same_ranks():
    """Rank 0 of one group sends to rank 0 of the other, which answers."""
    there, back = recv(0, 0, tag=1), recv(0, 0, tag=2)
    records = {0: bridge(0, send(0, 1), back), 2: bridge(2, there, send(0, 2))}
    messages = messages_of(records)
    assert [(sent.rank, taken.rank) for sent, taken in messages.pairs] == [(0, 2), (2, 0)]
    assert not messages.unmatched


def test_a_persistent_request_has_two_lines():
    records = {0: record(0, 2, send(1, signature=INTS)), 1: record(1, 2, recv(0, 0))}
    (event,) = [each for each in records[0].events if each[0] == "send"]
    records[0].take_event(("site", 50, FILE, 50, "main"))
    records[0].take_event(("started", 51, 1, 50, "comm.Send_init"))
    records[0].events[0] = (event[0], 51, *event[2:])
    (found,) = findings_of(records, None, went_well=True)
    assert found.kind == "type-mismatch"
    assert [(site["line"], site["call"]) for site in found.sites] == [
        (1, "comm.Send"), (50, "comm.Send_init"), (101, "comm.Recv"),
    ]  # fmt: skip


# --- collective calls


def test_the_same_calls():
    assert not found_in(*[[coll("Bcast", 0, sends=LONG), coll("Barrier")]] * 3)


FOUR = ((("f8", 4),), 1)
REDUCED = {"op": "SUM"}


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        (coll("Barrier"), coll("Bcast", 0), "collective-order"),
        (coll("Bcast", 0), coll("Ibcast", 0), "collective-order"),
        (coll("Bcast", 0), coll("Bcast", 1), "root-mismatch"),
        (coll("Reduce", 0, "SUM"), coll("Reduce", 0, "MAX"), "op-mismatch"),
        (coll("Bcast", 0, sends=INTS), coll("Bcast", 0, sends=FOUR), "type-mismatch"),
        (coll("Bcast", 0, sends=FOUR), coll("Bcast", 0, sends=LONG), "count-mismatch"),
        (
            coll("Allreduce", **REDUCED, sends=INTS),
            coll("Allreduce", **REDUCED, sends=((("i4", 5),), 1)),
            "count-mismatch",
        ),
        (
            coll("Gather", 0, sends=INTS, receives=INTS),
            coll("Gather", 0, sends=LONG),
            "type-mismatch",
        ),
        (
            coll("Scatterv", 0, sends=[INTS, LONG], receives=INTS),
            coll("Scatterv", 0, receives=LONG),
            "",
        ),
        (
            coll("Scatterv", 0, sends=[INTS, INTS], receives=INTS),
            coll("Scatterv", 0, receives=LONG),
            "type-mismatch",
        ),
        (
            coll("Alltoall", sends=INTS, receives=INTS),
            coll("Alltoall", sends=INTS, receives=INTS),
            "",
        ),
        (
            coll("Allgather", sends=None, receives=INTS),
            coll("Allgather", sends=INTS, receives=INTS),
            "",
        ),
    ],
)
def test_arguments_of_members(one, other, kind):
    found = found_in([one], [other])
    assert [each.kind for each in found] == ([kind] if kind else [])
    if kind:
        assert lines(found[0]) == {1, 101}


def test_a_call_that_one_member_does_not_make():
    found = found_in([coll("Barrier"), coll("Bcast", 0)], [coll("Barrier")])
    assert [(one.kind, lines(one)) for one in found] == [("collective-order", {2})]


def test_different_calls_of_those_who_came():
    """The job was ended before the third had begun its call."""
    early = [coll("Barrier")], [coll("Bcast", 0)], []
    found = found_in(*early, ends=False, went_well=False)
    assert [(one.kind, lines(one)) for one in found] == [("collective-order", {1, 101})]
    roots = [coll("Bcast", 0, sends=INTS)], [coll("Bcast", 1, sends=LONG)], []
    assert kinds(*roots, ends=False, went_well=False) == ["root-mismatch"]
    # of the data nothing is said: whose meet is told by all members together
    data = [coll("Bcast", 0, sends=INTS)], [coll("Bcast", 0, sends=LONG)], []
    assert not kinds(*data, ends=False, went_well=False)


def test_the_deadlock_of_different_calls_is_told_once():
    deadlock = {
        "waits": [{"rank": 0, "file": "p.py", "line": 3, "text": "comm.Barrier()", "for": []}]
    }
    arguments = [coll("Barrier"), coll("Bcast", 1)], [coll("Bcast", 1), coll("Barrier")]
    assert kinds(*arguments, ends=False, went_well=False, deadlock=deadlock) == ["collective-order"]
    assert kinds([], [], ends=False, went_well=False, deadlock=deadlock) == ["deadlock"]


# --- buffering


def test_both_send_first():
    found = found_in([send(1), recv(1, 1)], [send(0), recv(0, 0)])
    assert [(one.kind, lines(one)) for one in found] == [("buffering-dependent", {1, 101})]


@pytest.mark.parametrize("mode", ["buffered", "synchronous"])
def test_other_modes(mode):
    programs = [send(1, mode=mode), recv(1, 1)], [send(0, mode="buffered"), recv(0, 0)]
    assert not found_in(*programs)


def test_one_receives_first():
    assert not found_in([send(1), recv(1, 1)], [recv(0, 0), send(0)])


def test_nonblocking_sends_depend_only_if_waited_for_too_early():
    early = [send(1, request=1), wait(1), recv(1, 1)], [send(0), recv(0, 0)]
    late = [send(1, request=1), recv(1, 1), wait(1)], [send(0), recv(0, 0)]
    assert kinds(*early) == ["buffering-dependent"]
    assert not kinds(*late)


def test_an_exchange_waits_for_both_at_once():
    both = [
        recv(1, None, request=2),
        send(1, request=1),
        ("got", 2, (1, 0, 32, True, -1)),
        wait(1, 2),
    ]
    other = [
        recv(0, None, request=2),
        send(0, request=1),
        ("got", 2, (0, 0, 32, True, -1)),
        wait(1, 2),
    ]
    assert not found_in(both, other)


def test_a_send_behind_a_collective_call():
    """The root of a bcast does not wait for the others; an allreduce does."""
    assert not kinds([coll("Bcast", 0), send(1)], [coll("Bcast", 0), recv(0, 0)])
    programs = [send(1), coll("Allreduce", op="SUM")], [coll("Allreduce", op="SUM"), recv(0, 0)]
    assert kinds(*programs) == ["buffering-dependent"]


def test_a_receive_from_anybody_that_would_take_it_in_place_of_its_own():
    """Another order of matching would do: nothing is proven."""
    taker = [recv(ANY_SOURCE, 2, asked=True), recv(ANY_SOURCE, 1, asked=True)]
    assert not kinds(taker, [send(0), send(2)], [recv(1, 1), send(0)])


# --- races


def test_two_messages_for_one_receive():
    program = [recv(ANY_SOURCE, 1, digest=1), recv(ANY_SOURCE, 2, digest=2)]
    found = found_in(program, [send(0)], [send(0)])
    assert [(one.kind, lines(one)) for one in found] == [("message-race", {1, 101, 201})]


@pytest.mark.parametrize(
    "first", [recv(ANY_SOURCE, 1, digest=1, asked=True), recv(ANY_SOURCE, 1, digest=2), recv(1, 1)]
)
def test_races_that_are_provided_for(first):
    """Who sent is asked, all is alike, or the source is named."""
    assert not kinds([first, recv(ANY_SOURCE, 2, digest=2)], [send(0)], [send(0)])


def test_a_message_that_is_sent_after_the_receive():
    """Rank 0 tells rank 2 to send when it has received."""
    program = [recv(ANY_SOURCE, 1, digest=1), send(2), recv(ANY_SOURCE, 2, digest=2)]
    assert not kinds(program, [send(0)], [recv(0, 0), send(0)])


def test_what_a_barrier_orders():
    program = [recv(ANY_SOURCE, 1, digest=1), coll("Barrier"), recv(ANY_SOURCE, 2, digest=2)]
    assert not kinds(program, [send(0), coll("Barrier")], [coll("Barrier"), send(0)])
    late = [coll("Barrier"), recv(ANY_SOURCE, 1, digest=1), recv(ANY_SOURCE, 2, digest=2)]
    sends = [send(0, mode="buffered"), coll("Barrier")]
    assert kinds(late, sends, sends) == ["message-race"]


# --- order


def test_order_by_messages_and_collectives():
    records = {
        0: record(0, 3, send(1), coll("Bcast", 0)),
        1: record(1, 3, recv(0, 0), coll("Bcast", 0), send(2)),
        2: record(2, 3, coll("Bcast", 0), recv(1, 1)),
    }
    order = Order(records, messages_of(records))
    assert order.before(0, 0, 1, 1)
    assert not order.before(1, 0, 0, 1)
    assert order.before(0, 0, 2, 1)
    assert not order.before(1, 0, 2, 0), "a bcast orders from its root only"
    assert order.before(1, 1, 2, 1)
    assert order.before(1, 0, 1, 1)


def _between(rank: int, root: int) -> Record:
    """The record of a member of two groups of two, evens and odds; each names a root."""
    made = Record(rank)
    own, others = [rank % 2, rank % 2 + 2], [1 - rank % 2, 3 - rank % 2]
    made.take_event(("comm", 2, "x", "x", rank // 2, others, own))
    made.take_event(("site", rank + 1, "app.py", rank + 1, "main"))
    made.take_event(("coll", rank + 1, "comm.bcast", 2, "bcast", root, "", None, None, 0))
    made.take_event(("end",))
    return made


@pytest.mark.parametrize(
    ("roots", "sites"),
    [
        ((ROOT, 0, PROC_NULL, 0), None),
        ((ROOT, 1, PROC_NULL, 1), [0, 1]),
        ((PROC_NULL, 0, ROOT, 0), [2, 1]),
        ((0, 0, 0, 0), [0, 1]),
        ((ROOT, ROOT, PROC_NULL, PROC_NULL), [0, 1]),
        ((ROOT, 0, ROOT, 0), [2, 1]),
        ((PROC_NULL, 0, PROC_NULL, 0), [0, 1]),
        ((2, 2, 2, 2), None),  # none of these is there: the calls refuse it
    ],
)
def test_roots_between_groups(roots: tuple[int, ...], sites: list[int] | None) -> None:
    found = findings_of(
        {rank: _between(rank, root) for rank, root in enumerate(roots)}, None, went_well=True
    )
    told = [(one.kind, [site["rank"] for site in one.sites]) for one in found]
    assert told == ([] if sites is None else [("root-mismatch", sites)])


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        (
            [coll("Bcast", root) for root in (0, 0, 1)],
            "the root is 1 on rank 2 and 0 on ranks 0, 1",
        ),
        (
            [coll("Allreduce", -1, op=op) for op in ("SUM", "MAX", "SUM", "SUM")],
            "the operation is MAX on rank 1 and SUM on ranks 0, 2, 3",
        ),
    ],
)
def test_ranks_that_say_the_same_are_told_together(calls, said):
    (found,) = found_in(*([call] for call in calls))
    assert said in found.message
