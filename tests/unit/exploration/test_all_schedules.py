"""The search finds every schedule of a small program, and no other, as trying everything does."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.data.constants import ANY_SOURCE, ANY_TAG

from tests.unit.exploration.all_orders import Oracle
from tests.unit.exploration.small_programs import explore

STEPS = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 2), st.integers(0, 1)),
    st.tuples(st.just("send"), st.integers(0, 2), st.integers(0, 1)),
    st.tuples(
        st.just("post"), st.sampled_from([ANY_SOURCE, 0, 1, 2]), st.sampled_from([ANY_TAG, 0, 1])
    ),
    st.tuples(st.just("post"), st.just(ANY_SOURCE), st.sampled_from([ANY_TAG, 0])),
    st.tuples(st.just("wait"), st.integers(0, 3)),
    st.tuples(st.just("any")),
    st.tuples(st.just("poll")),
    st.tuples(
        st.sampled_from(["probe", "iprobe"]), st.sampled_from([ANY_SOURCE, 1]), st.just(ANY_TAG)
    ),
)


def program(steps):
    """A rank; its waits are for the operations it has begun."""

    def rank():
        begun = []
        for what, *words in steps:
            if what in {"send", "ssend"}:
                number = yield (what, *words)
            elif what == "post":
                begun.append((yield (what, *words)))
            elif what == "wait":
                if begun:
                    yield ("wait", begun[words[0] % len(begun)])
            elif what == "any":
                if len(begun) > 1:
                    yield ("any", tuple(begun[-2:]))
            else:
                yield (what, *words)

    return rank


@given(st.lists(st.lists(STEPS, max_size=5), min_size=2, max_size=3))
@settings(max_examples=300, deadline=None)
def test_as_by_trying_everything(programs):
    programs = [
        [step for step in steps if step[0] != "send" or step[1] < len(programs)]
        for steps in programs
    ]
    ranks = [program(steps) for steps in programs]
    search = explore(ranks, polls=10)
    assert search.outcomes == Oracle(ranks).run()
