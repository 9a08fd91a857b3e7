"""Whether ranks can ever go on, by what they say of themselves."""

from __future__ import annotations

import json
from itertools import product
from random import Random
from typing import Any

import pytest
from ompy.runtime.diagnosis.autopsy import as_json, autopsy_lines
from ompy.runtime.machines.diagnosis.deadlock import Said, find_deadlock
from ompy.runtime.machines.diagnosis.nearest import nearest_misses

AT = {"file": "app.py", "line": 3, "function": "main", "text": "comm.Recv(room)"}


def need(what: str, ranks: list[int], **more: Any) -> dict[str, Any]:
    """One in communicator 0."""
    common = {"comm": 0, "name": "MPI_COMM_WORLD", "every": True, "tag": 7, "sequence": 1}
    text = f"{what} of {ranks}"
    return {"what": what, "ranks": ranks, **common, "size": 8, "number": 1, "text": text, **more}


def said(*needs: dict[str, Any] | None, **more: Any) -> Said:
    """A rank whose one thread needs any of these; None: it is not known what it needs."""
    wait = {"since": 1, "at": AT, "needs": None if None in needs else list(needs)}
    common = {"begun": {"0": 0}, "sent": {"0": []}, "received": {"0": []}, "unmatched": []}
    return {"live": "", "waits": [wait], "tasks": [], **common, **more}


def found(*ranks: Said) -> list[int]:
    """Which never go on."""
    result = find_deadlock(dict(enumerate(ranks)))
    return sorted(result.ranks) if result else []


def receive(rank: int) -> dict[str, Any]:
    return need("receive", [rank])


def from_any(*ranks: int) -> dict[str, Any]:
    return need("receive", list(ranks), every=False)


def collective(*ranks: int, number: int = 1, comm: int = 0) -> dict[str, Any]:
    return need("collective", list(ranks), number=number, comm=comm)


LIVE: Said = {"live": "it is in no call that waits"}


def test_a_circle_never_goes_on():
    assert found(said(receive(1)), said(receive(2)), said(receive(0))) == [0, 1, 2]


def test_who_waits_for_a_circle_is_lost_with_it():
    assert found(said(receive(1)), said(receive(0)), said(receive(0))) == [0, 1, 2]


def test_a_rank_that_receives_from_itself():
    assert found(said(receive(0)), LIVE) == [0]


@pytest.mark.parametrize("other", [LIVE, said(None)])
def test_who_waits_for_one_that_may_go_on_is_not_lost(other: Said):
    assert found(said(receive(1)), other) == []
    assert find_deadlock({0: said(receive(1))}) is None, "nothing is known of the other"


def test_who_could_revoke_the_communicator_frees():
    """Where ranks may die, also one that nobody waits for."""
    waiting = [said(need("receive", [1 - rank], revokers=[0, 1, 2])) for rank in range(2)]
    assert found(*waiting, LIVE) == []
    assert found(*waiting, said(receive(0))) == [0, 1, 2], "it does nothing either"
    others = [said(need("receive", [1 - rank], revokers=[0, 1])) for rank in range(2)]
    assert found(*others, LIVE) == [0, 1], "it is no member"
    assert found(*waiting, said(receive(0), revoked=[0])) == [], "the word is under way"
    assert found(*waiting, said(receive(0), revoked=[9])) == [0, 1, 2], "another one"


def test_a_message_under_way_frees():
    sender = said(receive(0), sent={"0": [[0, 5]]})
    assert found(said(receive(1), received={"0": [[1, 4]]}), sender) == []
    assert found(said(receive(1), received={"0": [[1, 5]]}), sender) == [0, 1]


def test_of_a_communicator_that_the_other_does_not_tell_of_nothing_is_known():
    assert found(said(receive(1)), said(receive(0), sent={})) == []


def test_any_source_needs_all_to_be_lost():
    any_of = from_any(1, 2)
    assert found(said(any_of), said(receive(0)), said(receive(0))) == [0, 1, 2]
    assert found(said(any_of), said(receive(0)), LIVE) == []


def test_waiting_for_any_of_several():
    assert found(said(receive(1), receive(2)), said(receive(0)), LIVE) == []
    assert found(said(receive(1), receive(2)), said(receive(0)), said(receive(0))) == [0, 1, 2]


def test_a_send_is_lost_only_while_its_message_lies_there():
    send = need("send", [1], sequence=4, tag=7, size=8)
    here = [[0, 0, 4, 7, 8]]
    assert found(said(send), said(receive(0), unmatched=here)) == [0, 1]
    assert found(said(send), said(receive(0))) == [], "it is under way, or received"
    assert found(said(send), said(receive(0), unmatched=[[0, 0, 3, 7, 8]])) == []


def test_who_has_not_come_to_a_collective_call():
    inside = said(collective(1), begun={"0": 1})
    assert found(inside, said(receive(0))) == [0, 1]
    assert found(inside, said(receive(2)), LIVE) == []


def test_all_who_have_not_come_are_told_of():
    """Whichever of them the algorithm hears from next: in the picture and in JSON, too."""
    inside = {"begun": {"0": 1}}
    ranks = (said(collective(2), **inside), said(collective(0), **inside))
    outside = (said(receive(0)), said(receive(0)), said(receive(0), begun={"9": 0}))
    seen = find_deadlock(dict(enumerate((*ranks, *outside))))
    assert seen is not None
    assert [each.ranks for each in seen.waits] == [(2, 3), (2, 3), (0,), (0,), (0,)]
    told = as_json(seen, dict(enumerate((*ranks, *outside))))
    assert [each["ranks"] for each in told["waits"][:2]] == [[2, 3], [2, 3]]


def test_who_is_over_a_collective_call_has_done_its_part():
    assert found(said(collective(1), begun={"0": 1}), said(receive(0), begun={"0": 2})) == []


def test_those_in_the_same_call_wait_for_each_other_and_are_not_at_fault():
    inside = [said(collective(1 - rank), begun={"0": 1}) for rank in range(2)]
    assert found(*inside) == []


def test_calls_in_different_orders_in_two_communicators():
    first = said(collective(1, comm=3), begun={"3": 1, "4": 0})
    second = said(collective(0, comm=4), begun={"3": 0, "4": 1})
    assert found(first, second) == [0, 1]


def test_a_call_beside_what_the_thread_waits_for_goes_on_by_itself():
    """Rank 1 sleeps in a receive, but its Ibarrier is not held up by that."""
    task = collective(0)
    beside = said(receive(0), begun={"0": 1}, tasks=[task])
    assert found(said(collective(1), begun={"0": 1}), beside) == []
    held = said(receive(0), begun={"0": 1}, tasks=[collective(2)])
    lost = said(receive(1), begun={"0": 0})
    assert found(said(collective(1), begun={"0": 1}), held, lost) == [0, 1, 2]


def test_starts_of_a_call_that_is_started_again_and_again():
    """It has a number since it was made: what counts is how often it was started."""

    def inside(number: int, start: int, other: int, *starts: int) -> Said:
        wants = need("collective", [other], number=number, start=start)
        return said(wants, begun={"0": 2}, started={"0": list(enumerate(starts, 1))})

    assert found(inside(1, 2, 1, 2, 1), inside(2, 2, 0, 1, 2)) == [0, 1]
    assert found(inside(1, 2, 1, 2, 1), inside(2, 2, 0, 2, 2)) == [], "it has done its part"
    assert found(inside(1, 2, 1, 2, 1), inside(1, 3, 0, 3, 1)) == [], "it is over that start"
    assert found(inside(1, 2, 1, 2, 1), inside(1, 2, 0, 2, 1)) == [], "both are in the same"
    assert found(inside(1, 2, 1, 2, 1), said(receive(0), begun={"0": 2})) == [], "not known"
    assert found(inside(1, 1, 1, 1), said(receive(0), begun={"0": 0})) == [0, 1], "never made"


def test_all_threads_have_to_be_lost():
    two = said(receive(1))
    more = {"since": 1, "at": AT, "needs": [receive(2)]}
    both = {**two, "waits": [*two["waits"], more]}
    assert found(both, said(receive(0)), LIVE) == []
    assert found(both, said(receive(0)), said(receive(0))) == [0, 1, 2]


def test_the_story_names_lines_the_circle_and_what_is_near():
    ranks = {
        0: said(receive(1), received={"0": [[1, 1]]}, unmatched=[[0, 1, 1, 8, 64]]),
        1: said(receive(0), sent={"0": [[0, 1]]}),
    }
    lost = find_deadlock(ranks)
    assert lost is not None
    assert lost.cycle == (0, 1)
    lines = autopsy_lines(lost, ranks)
    assert lines[0] == "deadlock: ranks 0, 1 can never go on; each waits for the next: 0 -> 1 -> 0"
    assert "  rank 0 is at app.py:3 in main: comm.Recv(room)" in lines
    assert "    near: 64 bytes from rank 1 are here, but with tag 8" in lines
    assert nearest_misses(ranks, lost.waits[1]) == []
    told = as_json(lost, ranks)
    assert json.loads(json.dumps(told)) == told
    assert told["ranks"] == [0, 1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("comm.Ssend(data, 0, 8)", "; sent at app.py:9"),
        ("comm.send(data, 0, 8)", "; sent at app.py:9"),
        ("comm.Sendrecv(data, 0)", "; sent at app.py:9"),
        ("comm.Isend(data, 0).Wait()", "; its sender waits for that at app.py:9"),
        ("MPI.Request.Waitall(sends)", "; its sender waits for that at app.py:9"),
    ],
)
def test_a_message_whose_sender_waits_for_it_has_a_line(text: str, says: str):
    sender = said(need("send", [0], sequence=3, tag=8, size=64))
    sender["waits"][0]["at"] = {**AT, "line": 9, "text": text}
    counts = {"received": {"0": [[1, 3]]}, "unmatched": [[0, 1, 3, 8, 64], [0, 1, 2, 9, 8]]}
    ranks = {0: said(receive(1), **counts), 1: {**sender, "sent": {"0": [[0, 3]]}}}
    lost = find_deadlock(ranks)
    assert lost is not None
    first, second = nearest_misses(ranks, lost.waits[0])
    assert first == f"64 bytes from rank 1 are here, but with tag 8{says}"
    assert second == "8 bytes from rank 1 are here, but with tag 9", "it was buffered"


def test_the_story_has_an_end():
    ranks = {rank: said(receive((rank + 1) % 100), sent={}) for rank in range(100)}
    for rank in range(100):
        ranks[rank] = said(receive((rank + 1) % 100))
    lost = find_deadlock(ranks)
    assert lost is not None
    assert len(autopsy_lines(lost, ranks)) < 60


def _can_finish(waits: list[tuple[str, tuple[int, ...]]], live: set[int]) -> set[int]:
    """Brute force: let whoever can be freed go, in any order, until nobody can."""
    free = set(live)
    while True:
        more = {
            rank
            for rank, (mode, ranks) in enumerate(waits)
            if rank not in free and (free >= set(ranks) if mode == "all" else free & set(ranks))
        }
        if not more:
            return free
        free |= more


@pytest.mark.parametrize("seed", range(200))
def test_as_brute_force_has_it(seed: int):
    random = Random(seed)
    size = random.randint(2, 6)
    waits = []
    for rank in range(size):
        others = [other for other in range(size) if other != rank]
        chosen = tuple(sorted(random.sample(others, random.randint(1, len(others)))))
        waits.append((random.choice(["all", "any"]), chosen))
    live = {rank for rank in range(size) if random.random() < 0.2}
    ranks = {
        rank: LIVE if rank in live else said(need("receive", list(who), every=mode == "all"))
        for rank, (mode, who) in enumerate(waits)
    }
    lost = find_deadlock(ranks)
    expected = set(range(size)) - _can_finish(waits, live)
    assert (set(lost.ranks) if lost else set()) == expected


def test_every_pair_of_small_states():
    """Two ranks, every mix of what each may say: only mutual waits without news are lost."""
    kinds = {"live": LIVE, "unknown": said(None), "waits": None}
    for one, two, under_way in product(kinds, kinds, (False, True)):
        sent = {"0": [[0, 1], [1, 1]]} if under_way else {"0": []}
        first = kinds[one] or said(receive(1), sent=sent)
        second = kinds[two] or said(receive(0), sent=sent)
        both = one == two == "waits" and not under_way
        assert found(first, second) == ([0, 1] if both else [])
