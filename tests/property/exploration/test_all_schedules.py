"""The search finds every schedule of a small program, and no other, as trying everything does."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.data.constants import ANY_SOURCE, ANY_TAG

from tests.property.exploration.all_orders import Oracle
from tests.property.exploration.small_programs import explore
from tests.support.effort import effort

POLLS = 10  # more than any of these programs polls
RANKS = st.integers(0, 3)
TAGS = st.integers(0, 1)
STEPS = st.one_of(
    st.tuples(st.just("send"), RANKS, TAGS),
    st.tuples(st.just("send"), RANKS, st.just(0)),
    st.tuples(st.just("ssend"), RANKS, TAGS),
    st.tuples(st.just("post"), st.just(ANY_SOURCE), st.sampled_from([ANY_TAG, 0])),
    st.tuples(st.just("post"), st.one_of(st.just(ANY_SOURCE), RANKS), TAGS),
    st.tuples(st.just("receive"), st.just(ANY_SOURCE), st.just(0)),
    st.tuples(st.just("wait"), st.integers(0, 3)),
    st.tuples(st.just("any")),
    st.tuples(st.just("poll")),
    st.tuples(
        st.sampled_from(["probe", "iprobe"]),
        st.one_of(st.just(ANY_SOURCE), RANKS),
        st.just(ANY_TAG),
    ),
)


def program(steps, size):
    """A rank; what it names is there, and its waits are for what it has begun."""

    def rank():
        begun = []
        for what, *words in steps:
            if what in {"send", "ssend"}:
                yield (what, words[0] % size, words[1])
            elif what in {"post", "receive"}:
                source = words[0] if words[0] == ANY_SOURCE else words[0] % size
                begun.append((yield ("post", source, words[1])))
                if what == "receive":
                    yield ("wait", begun[-1])
            elif what == "wait":
                if begun:
                    yield ("wait", begun[words[0] % len(begun)])
            elif what == "any":
                if len(begun) > 1:
                    yield ("any", tuple(begun[-2:]))
            else:
                yield (what, *words)

    return rank


@given(st.lists(st.lists(STEPS, min_size=1, max_size=4), min_size=2, max_size=4), st.booleans())
@settings(max_examples=effort(150), deadline=None)
def test_as_by_trying_everything(steps, buffers):
    ranks = [program(each, len(steps)) for each in steps]
    search, outcomes = explore(ranks, polls=POLLS, buffers=buffers)
    assert outcomes == Oracle(ranks, buffers=buffers).run()
    assert search.schedules == len(outcomes)
    assert search.left == 0


def test_each_order_of_three_messages_once():
    def master():
        for _ in range(3):
            yield ("wait", (yield ("post", ANY_SOURCE, 0)))

    def worker():
        yield ("send", 0, 0)

    search, outcomes = explore([master, worker, worker, worker])
    assert (search.worlds, len(outcomes)) == (6, 6)


def test_a_message_that_comes_only_after_another_choice():
    """The second sender is free only when the first has been heard, by another rank."""

    def listener():
        for _ in range(2):
            yield ("wait", (yield ("post", ANY_SOURCE, 0)))

    def first():
        yield ("send", 0, 0)
        yield ("send", 2, 0)

    def second():
        yield ("wait", (yield ("post", ANY_SOURCE, 0)))
        yield ("send", 0, 0)

    search, outcomes = explore([listener, first, second])
    assert (search.worlds, len(outcomes)) == (2, 2)


def test_a_receive_has_chosen_when_its_rank_hears_of_a_later_message():
    """What the rank sends to itself then is too late for it."""

    def listener():
        yield ("post", ANY_SOURCE, 0)
        yield ("probe", ANY_SOURCE, ANY_TAG)
        yield ("send", 0, 0)

    def sender():
        yield ("send", 0, 0)
        yield ("send", 0, 1)

    search, outcomes = explore([listener, sender])
    assert outcomes == Oracle([listener, sender]).run()
    assert search.schedules == 1


def test_what_a_probe_has_found_is_there():
    def prober():
        yield ("probe", ANY_SOURCE, ANY_TAG)
        assert (yield ("iprobe", ANY_SOURCE, ANY_TAG)) is not None

    def sender():
        yield ("send", 0, 0)

    search, _ = explore([prober, sender])
    assert search.schedules == 1


def test_a_poll_may_find_nothing_so_often_and_no_more():
    def poller():
        post = yield ("post", 1, 0)
        while post not in dict((yield ("poll",))):
            pass

    def sender():
        yield ("send", 0, 0)

    for polls in range(4):
        search, _ = explore([poller, sender], polls=polls)
        assert search.schedules == polls + 1
