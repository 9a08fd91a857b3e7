"""Random programs against MPI's matching rules, in the virtual world.

Each rank sends what it was told to send and posts what it was told to post, in a random
interleaving. When everything has arrived, receives that nothing fitted are cancelled and
messages that nothing took are drained. The outcome is then checked against the rules themselves:

* a receive got a message that fits it, with the right bytes, or a truncation error;
* no message went twice, none was lost;
* two messages of one sender that fit the same receive arrive in the order they were sent;
* of two receives that fit the same message, the one posted first is not served later by the same
  sender;
* nothing that fits is left over on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ompy.data.buffered import BufferedConvertor
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import ContiguousConvertor, Convertor, GrowingConvertor
from ompy.data.errors import ERR_TRUNCATE
from ompy.data.request import Request
from ompy.engine.virtual_engine import Deadlock
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import pattern, send, wind_on, world
from tests.support.effort import effort
from tests.support.forms import interpreted_only
from tests.support.mutants import MUTANTS, planted
from tests.support.reference_matcher import match
from tests.support.worlds import virtual

FINAL_TAG = -50  # internal: no wildcard takes it
SIZES = (0, 1, 200, 300, 4000, 5000, 70_000, 200_000)
TRANSPORTS = (
    {"btl": "self,sm"},
    {"btl": "self,tcp"},
    {"btl": "self,sm", "btl_sm_ring_slots": 2, "btl_sm_free_list_max": 1},
    {"btl": "self,tcp", "btl_tcp_free_list_max": 1, "btl_tcp_eager_limit": 512},
    {"btl": "self,tcp", "pml_ob1_message_window": 2, "pml_ob1_unexpected_bytes": 400},
)
FIRSTS = (1, 2**32 - 4)  # numbers of the first message of each pair: the other wraps soon
RAILS = (
    (Rail("only"),),
    (Rail("near"), Rail("far", latency=300_000, jitter=250_000, bandwidth=500)),
    (Rail("x", window=200), Rail("y", window=300), Rail("z", jitter=100_000)),
)


@dataclass(frozen=True)
class Sent:
    """A message to send."""

    target: int
    tag: int
    size: int
    mode: int


@dataclass(frozen=True)
class Posted:
    """A receive to post; `room` is None for one that grows."""

    source: int
    tag: int
    room: int | None


@dataclass
class Outcome:
    """What happened on one rank: per posted receive, then per drained message."""

    matched: list[tuple[int, int, int] | None] = field(default_factory=list)  # source, tag, number
    drained: list[tuple[int, int, int]] = field(default_factory=list)
    sizes: dict[tuple[int, int], int] = field(default_factory=dict)  # by source, number


def actions(ranks: int, sizes: tuple[int, ...] = SIZES) -> st.SearchStrategy[list[Sent | Posted]]:
    sends = st.builds(
        Sent,
        st.integers(0, ranks - 1),
        st.integers(0, 2),
        st.sampled_from(sizes),
        st.sampled_from([STANDARD, STANDARD, SYNCHRONOUS, SYNCHRONOUS, BUFFERED, READY]),
    )
    receives = st.builds(
        Posted,
        st.sampled_from([ANY_SOURCE, *range(ranks)]),
        st.sampled_from([ANY_TAG, 0, 1, 2]),
        st.sampled_from([None, None, None, 0, 250, 100_000]),
    )
    return st.lists(st.one_of(sends, receives), max_size=14)


def begin(comm: Communicator, data: bytearray, message: Sent) -> Request:
    """Begin to send; a buffered message's memory is spoilt at once, as a user may."""
    convertor: Convertor = ContiguousConvertor(memoryview(data))
    if message.mode != BUFFERED:
        return comm.pml.isend(comm, convertor, message.target, message.tag, message.mode)
    convertor = BufferedConvertor(convertor, lambda size: memoryview(bytearray(size)))
    request = comm.pml.isend(comm, convertor, message.target, message.tag, BUFFERED)
    convertor.keep(0)
    data[:] = b"\xdd" * len(data)
    return request


def run_rank(process: RankProcess, todo: list[Sent | Posted], first: int = 1) -> Outcome:
    comm, pml = world(process), process.pml
    wind_on(comm, first)
    sends, receives = [], []
    numbers = dict.fromkeys(range(comm.size), 0)
    for action in todo:
        if isinstance(action, Sent):
            number = numbers[action.target]
            numbers[action.target] += 1
            data = number.to_bytes(2, "big") + pattern(action.size, comm.rank)
            sends.append(begin(comm, bytearray(data), action))
        else:
            room = (
                GrowingConvertor()
                if action.room is None
                else ContiguousConvertor(memoryview(bytearray(2 + action.room)))
            )
            receives.append((pml.irecv(comm, room, action.source, action.tag), room))
        if process.context.engine.random.random() < 0.3:
            process.context.engine.progress()
    finals = [pml.isend(comm, send(b""), peer, FINAL_TAG, STANDARD) for peer in range(comm.size)]
    for peer in range(comm.size):
        # its messages match in order, so when this one is here all others are matched or queued
        pml.wait(
            comm, pml.irecv(comm, ContiguousConvertor(memoryview(bytearray())), peer, FINAL_TAG)
        )
    outcome = Outcome()
    for request, _ in receives:
        pml.cancel(request)
    while (message := pml.improbe(comm, ANY_SOURCE, ANY_TAG)) is not None:
        room = GrowingConvertor()
        request = pml.wait(comm, pml.imrecv(message, room))
        number = check(request, room, outcome)
        outcome.drained.append((message.source, message.tag, number))
    for request, room in receives:
        process.context.engine.wait(request)
        if request.cancelled:
            outcome.matched.append(None)
            continue
        assert (request.error == ERR_TRUNCATE) == (request.length > room.size)
        number = check(request, room, outcome)
        outcome.matched.append((request.source, request.tag, number))
    for request in (*sends, *finals):
        pml.wait(comm, request)
    return outcome


def check(request: Request, room: ContiguousConvertor, outcome: Outcome) -> int:
    """The number of the message in `room`, whose every byte is right, and none behind it."""
    assert room.view is not None
    assert request.received == min(request.length, room.size)
    stored, rest = bytes(room.view[: request.received]), bytes(room.view[request.received :])
    assert stored[2:] == pattern(request.length - 2, request.source)[: len(stored) - 2]
    assert rest == bytes(len(rest))
    number = int.from_bytes(stored[:2], "big")
    outcome.sizes[request.source, number] = request.length - 2
    return number


def fits(receive: Posted, source: int, tag: int) -> bool:
    if receive.source not in (ANY_SOURCE, source):
        return False
    return receive.tag == tag or (receive.tag == ANY_TAG and tag >= 0)


def compare(me: int, programs: list[list[Sent | Posted]], outcome: Outcome) -> None:
    """The outcome is, message for message, what the reference matcher says."""
    sent = {
        source: [a.tag for a in program if isinstance(a, Sent) and a.target == me]
        for source, program in enumerate(programs)
    }
    posted = [(a.source, a.tag) for a in programs[me] if isinstance(a, Posted)]
    chosen = [got and got[0] for got in outcome.matched]
    expected, left = match(posted, sent, chosen)
    assert [got and (got[0], got[2]) for got in outcome.matched] == expected
    drained = [(source, number) for source, _, number in outcome.drained]
    assert sorted(drained, key=lambda message: message[0]) == left  # each sender's in order
    tags = [(source, number, tag) for source, tag, number in (*filter(None, outcome.matched),)]
    tags += [(source, number, tag) for source, tag, number in outcome.drained]
    assert all(sent[source][number] == tag for source, number, tag in tags)
    sizes = {
        (source, number): action.size
        for source, program in enumerate(programs)
        for number, action in enumerate(
            a for a in program if isinstance(a, Sent) and a.target == me
        )
    }
    assert outcome.sizes == sizes


def judge(me: int, programs: list[list[Sent | Posted]], outcome: Outcome) -> None:
    compare(me, programs, outcome)
    posted = [action for action in programs[me] if isinstance(action, Posted)]
    sent = {
        (source, number): message.tag
        for source, program in enumerate(programs)
        for number, message in enumerate(
            action for action in program if isinstance(action, Sent) and action.target == me
        )
    }
    matched = [
        (index, *got) for index, got in enumerate(outcome.matched) if got is not None
    ]  # index, source, tag, number
    delivered = [(source, number) for _, source, _, number in matched]
    delivered += [(source, number) for source, _, number in outcome.drained]
    assert sorted(delivered) == sorted(sent), "every message once"
    for index, source, tag, number in matched:
        # the final receives are posted last and name their tag: they take nothing from anybody
        assert sent[source, number] == tag
        assert fits(posted[index], source, tag)
    taken_by = {(source, number): index for index, source, _, number in matched}
    for index, source, _, number in matched:
        for earlier in range(number):
            if fits(posted[index], source, sent[source, earlier]):
                other = taken_by.get((source, earlier))
                assert other is not None, "a later message overtook one that was left over"
                assert other < index, "a later message overtook an earlier one"
    served = {index: (source, number) for index, source, _, number in matched}
    for index, source, tag, number in matched:
        for before in range(index):
            if fits(posted[before], source, tag):
                assert before in served, "a receive posted earlier was left over"
                its_source, its_number = served[before]
                assert its_source != source or its_number < number
    for index, got in enumerate(outcome.matched):
        if got is None:
            for source, tag, _ in outcome.drained:
                assert not fits(posted[index], source, tag), "a pair that fits was left over"


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[list[Sent | Posted]], dict, tuple[Rail, ...], int]:
    ranks = draw(st.integers(1, 3))
    programs = [draw(actions(ranks)) for _ in range(ranks)]
    transport = draw(st.sampled_from(TRANSPORTS))
    rails = draw(st.sampled_from(RAILS))
    return programs, transport, rails, draw(st.integers(0, 2**32)), draw(st.sampled_from(FIRSTS))


def examine(world_: tuple) -> None:
    programs, transport, rails, seed, first = world_
    todo = [lambda process, mine=mine: run_rank(process, mine, first) for mine in programs]
    job = virtual(len(programs), todo, seed=seed, rails=rails, **transport)
    for rank, outcome in enumerate(job.results):
        judge(rank, programs, outcome)


PROFILE = settings(
    max_examples=effort(220),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
test_random_programs_keep_the_rules = PROFILE(given(worlds())(examine))
hunt = settings(PROFILE, phases=[Phase.generate])(given(worlds())(examine))


@interpreted_only
@pytest.mark.parametrize("mutant", sorted(MUTANTS))
def test_the_rules_notice_a_planted_defect(mutant: str) -> None:
    with planted(mutant), pytest.raises((AssertionError, Deadlock)):
        hunt()
