"""Commits, lookups, fences and departures, in any order."""

from hypothesis import given
from hypothesis import strategies as st
from ompy.frameworks.job import Placement
from ompy.runtime.connections.modex import CardIndex, ModexStore, bundle, pack, unpack

SIZE = 8  # ranks that the job begins with


class Asker:
    def __init__(self):
        self.answers = []

    def __call__(self, packed, why):
        self.answers.append((packed, why))


def store(*ranks):
    return ModexStore(frozenset(ranks), [0] * SIZE, 0)


def test_lookup_waits_for_the_commit():
    modex, early, late = store(0, 1), Asker(), Asker()
    modex.lookup(1, early)
    assert early.answers == []
    modex.commit(1, b"address")
    modex.lookup(1, late)
    assert early.answers == late.answers == [(b"address", "")]


def test_a_second_commit_replaces_the_first():
    modex, asker = store(0), Asker()
    modex.commit(0, b"old")
    modex.commit(0, b"new")
    modex.lookup(0, asker)
    assert asker.answers == [(b"new", "")]


def test_a_rank_that_ended_without_committing_is_refused():
    modex, early, late = store(0, 1), Asker(), Asker()
    modex.lookup(1, early)
    modex.depart(1, "was killed by signal 9")
    modex.lookup(1, late)
    assert early.answers == late.answers == [(None, "was killed by signal 9")]


def test_what_a_departed_rank_committed_can_still_be_looked_up():
    modex, asker = store(0, 1), Asker()
    modex.commit(1, b"address")
    modex.depart(1, "has finalized and ended")
    modex.lookup(1, asker)
    assert asker.answers == [(b"address", "")]


def test_another_host_is_asked_for_once():
    modex, asker = ModexStore(frozenset({0}), [0, 0, 0, 1, 1], 0), Asker()
    assert not modex.lookup(1, Asker()), "its own host's"
    assert modex.lookup(3, asker)
    assert not modex.lookup(3, asker)
    assert not modex.lookup(4, Asker())
    modex.commit(3, b"three")
    modex.follow(1)
    assert asker.answers == [(b"three", "")] * 2
    assert not modex.lookup(4, Asker()), "it will be told"


def test_an_agent_is_told_of_a_host_when_it_wants_one_of_its_ranks_and_what_is_new_from_then_on():
    index, places = CardIndex(), [Placement(rank, 0, rank // 2, rank % 2) for rank in range(6)]
    assert index.commit(bundle({2: b"a", 3: b"b"}), places) == []
    assert index.cards_for(0, 1) == bundle({2: b"a", 3: b"b"})
    assert index.cards_for(7, 2) == b"", "nothing is there yet"
    assert index.commit(bundle({2: b"again"}), places) == [0]
    assert index.commit(bundle({5: b"late"}), places) == [7]
    assert index.cards_for(9, 1) == bundle({2: b"again", 3: b"b"})


def test_fence_is_complete_when_all_of_this_host_have_come():
    modex, first, second = store(0, 1), Asker(), Asker()
    assert not modex.fence(0, first)
    assert modex.fence(1, second)
    assert first.answers == second.answers == []
    modex.fenced()
    assert first.answers == second.answers == [(b"", "")]
    assert not modex.fence(0, first), "the next fence begins anew"


def test_fence_cannot_complete_without_a_departed_rank():
    modex, waiting, late = store(0, 1, 2), Asker(), Asker()
    modex.fence(0, waiting)
    modex.depart(2, "has finalized and ended")
    assert not modex.fence(1, late)
    assert waiting.answers == late.answers == [(None, "rank 2 has finalized and ended")]


@given(st.dictionaries(st.text(max_size=20), st.binary(max_size=100)))
def test_published_survives_packing(published):
    assert unpack(pack(published)) == published


def test_a_fence_is_for_the_ranks_that_a_job_begins_with():
    hosts, first, second, later = [0] * SIZE, Asker(), Asker(), Asker()
    modex = ModexStore(frozenset({0, 1}), hosts, 0)
    hosts += [0, 0]  # a world that came later
    modex.depart(SIZE, "ended with exit code 0")
    assert not modex.fence(0, first)
    assert not modex.fence(SIZE + 1, later)
    assert modex.fence(1, second)
    modex.depart(SIZE + 1, "ended with exit code 0")
    modex.fenced()
    assert first.answers == second.answers == [(b"", "")]
    assert later.answers == [(None, "it is for the processes that a job begins with")]
