"""The life of a path: its table, and both ends under every order, loss, repetition and break."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest
from ompy.frameworks.paths.healing import HealingLimits
from ompy.frameworks.paths.path_life import (
    DOWN,
    IN_USE,
    QUIET,
    TABLE,
    TRYING,
    Act,
    Do,
    Kind,
    Life,
    Opening,
    PathLife,
    Stage,
    WrongLife,
)

from tests.support.effort import THOROUGH

KEPT = 2  # packets under way to an end; that older ones are lost is one of the cases
WORDS = Opening(connects=False, repeat=10, repeat_max=80, tries=2)
CONNECTIONS = Opening(connects=True, repeat=10, repeat_max=80, tries=2)
LIMITS = HealingLimits(answers=1, ask_pause=5, pause=7, pause_max=50, late=3, hold=20)
Packet = tuple[str, int, Stage, int]  # WORD, DATA, or CLOSED; the last: who began the connection


class Still(Random):
    """Draws no jitter."""

    def randrange(self, *arguments: Any, **more: Any) -> int:
        return 0


def end_of(opening: Opening, *, senior: bool, number: int) -> PathLife:
    return PathLife(LIMITS, opening, Still(), senior=senior, number=number)


def end_in(life: Life) -> PathLife:
    """An end in some life, which has worked before."""
    path = end_of(WORDS, senior=True, number=1)
    path.life = life
    if life in TRYING:
        path.number = path._proposed = 2
    elif life in DOWN:
        path.told_broken = True
    if life not in QUIET | IN_USE:
        path.due = 0
    return path


def key(path: PathLife) -> object:
    """What of an end decides what it does; moments do not, nor repetitions beyond the last."""
    left_out = ("_limits", "_opening", "_damping", "due", "_repeated")
    state = tuple(getattr(path, name) for name in path.__slots__ if name not in left_out)
    return (*state, path.due is None, min(path._repeated, path._opening.tries + 1))


def test_all_pairs_of_life_and_kind() -> None:
    """What cannot happen is an error that says so; all that can leads where the table says."""
    words = {Kind.NEWER, Kind.ASKED, Kind.ANSWERED}
    for life, kind in product(Life, set(Kind) - words):
        path = end_in(life)
        if (life, kind) in TABLE:
            path.handle(kind, 0, "a reason")
            assert path.life in TABLE[life, kind], (life, kind)
        else:
            with pytest.raises(WrongLife, match=f"{life.value} cannot be told: {kind.value}"):
                path.handle(kind, 0, "a reason")


class Net(NamedTuple):
    """Two ends, what is under way to each, and how often something may still break.

    Attributes:
        begun: by whom the connection was that an end has or tries.
        reached: the highest generation that an end has been in. Back from it leads a first
            connection: one's own attempt was given up, the peer's earlier one is taken.
        kept: so many packets are under way to an end at most.
    """

    ends: tuple[PathLife, PathLife]
    wires: tuple[tuple[Packet, ...], tuple[Packet, ...]]
    breaks: int
    begun: tuple[int, int] = (0, 0)
    reached: tuple[int, int] = (0, 0)
    kept: int = KEPT

    def key(self) -> object:
        wires = tuple(map(frozenset, self.wires))  # any of a wire may come first
        ends = key(self.ends[0]), key(self.ends[1])
        return *ends, wires, self.breaks, self.begun, self.reached


def begun(net: Net, which: int, by: int) -> Net:
    return net._replace(begun=(by, net.begun[1]) if which == 0 else (net.begun[0], by))


def with_wire(net: Net, which: int, wire: tuple[Packet, ...]) -> Net:
    wires = (wire, net.wires[1]) if which == 0 else (net.wires[0], wire)
    return net._replace(wires=wires)


def put(net: Net, which: int, packet: Packet) -> Net:
    """Something goes to an end."""
    wire = net.wires[which]
    return with_wire(net, which, (*(one for one in wire if one != packet), packet)[-net.kept :])


def perform(net: Net, which: int, before: PathLife, acts: list[Act]) -> Net:
    """What the driver does; invariants of every step are looked at."""
    path, other = net.ends[which], net.ends[1 - which]
    one, two = (max(end.number, far) for end, far in zip(net.ends, net.reached, strict=True))
    net = net._replace(reached=(one, two))
    if path.life is Life.FRESH and before.life is not Life.FRESH:
        assert before.life is Life.DRAINING, "a first connection that nobody needs"
        assert path._opening.connects
        assert not path.told_broken
    does = {act.what for act in acts}
    if not path._opening.connects:  # devices report what queues had, later
        assert not does >= {Do.DROP, Do.RENEW}, "an attempt is drained before the next one"
    for act in acts:
        if act.what is Do.SAY:
            assert path.stage is not None, "there is a word to say"
            net = begun(net, which, which)
            net = put(net, 1 - which, ("WORD", path.number, path.stage, which))
        elif act.what is Do.TAKE:
            net = begun(net, which, 1 - which)
            net = put(net, 1 - which, ("WORD", path.number, Stage.UP, 1 - which))
        elif act.what is Do.RENEW:
            assert path.number != before._used, "a generation that has worked begins again"
        elif act.what is Do.READY:
            assert path.life is Life.WORKING
            assert net.reached[1 - which] >= path.number, "the other end has never been there"
            if not path._opening.connects:
                there = other.number, other.life
                assert there != (path.number, Life.OPENING), "the other end has not heard of it"
        elif act.what in (Do.FAIL, Do.DROP) and path._opening.connects:
            net = put(net, 1 - which, ("CLOSED", before.number, Stage.UP, net.begun[which]))
    return net


BROKEN = {
    "unwanted": lambda path: path.handle(Kind.BROKE, 0, "broke", wanted=False),
    "hopeless": lambda path: path.handle(Kind.BROKE, 0, "broke", final=True),
}


def step(net: Net, which: int, call: str, *arguments: Any) -> Net:
    """One end is told something."""
    before = net.ends[which]
    path = copy.copy(before)
    path._damping = copy.copy(before._damping)
    acts = getattr(path, call)(*arguments) if call not in BROKEN else BROKEN[call](path)
    ends = (path, net.ends[1]) if which == 0 else (net.ends[0], path)
    net = perform(net._replace(ends=ends), which, before, acts)
    if any(act.what is Do.REFUSE for act in acts):
        net = put(net, 1 - which, ("CLOSED", arguments[0], Stage.UP, 1 - which))
    return net


def arrive(net: Net, which: int, packet: Packet) -> Net:
    name, number, stage, by = packet
    path = net.ends[which]
    if name == "WORD":
        return step(net, which, "word", number, stage, 0)
    if name == "CLOSED":
        ours = number == path.number and by == net.begun[which]
        if ours and path.life in (*IN_USE, *TRYING):
            return step(net, which, "handle", Kind.BROKE, 0, "closed")
        return net
    if number == path.number and path.life in (*TRYING, *IN_USE):
        if path._opening.connects and by != net.begun[which]:
            return net
        return step(net, which, "data", 0)
    return net  # of another generation


def own(net: Net, which: int) -> Iterator[Net]:
    """What may happen at an end by itself."""
    path = net.ends[which]
    if path.due is not None:
        yield step(net, which, "handle", Kind.TIME, path.due)
    if path._asked:
        yield step(net, which, "handle", Kind.ALIVE, 0)
        if path.life is not Life.ASKING and net.breaks:
            spent = net._replace(breaks=net.breaks - 1)
            yield step(spent, which, "handle", Kind.DEAD, 0, "dead")
    if path.life is Life.FRESH:
        yield step(net, which, "handle", Kind.WANTED, 0)
    elif path.life is Life.DRAINING:
        yield step(net, which, "handle", Kind.DRAINED, 0)
    elif path.life in IN_USE:
        yield put(net, 1 - which, ("DATA", path.number, Stage.UP, net.begun[which]))
        yield step(
            net, which, "handle", Kind.SILENT if path.life is Life.WORKING else Kind.HEARD, 0
        )
    if net.breaks and path.life in (*IN_USE, *TRYING):
        spent = net._replace(breaks=net.breaks - 1)
        yield step(spent, which, "handle", Kind.BROKE, 0, "broke")
        if path._opening.connects and path.life in TRYING:
            yield step(spent, which, "unwanted")
            yield step(spent, which, "hopeless")
        if not path._opening.connects:
            yield step(spent, which, "notice", path.number, "told over another rail", 0)


def after(net: Net) -> Iterator[Net]:
    """Everything that can happen next: arrival, loss, repetition, a break, time."""
    for which in (0, 1):
        wire = net.wires[which]
        for packet in wire:
            rest = tuple(other for other in wire if other != packet)
            yield arrive(with_wire(net, which, rest), which, packet)
            if not net.ends[which]._opening.connects:
                yield arrive(net, which, packet)  # it comes again later
                yield with_wire(net, which, rest)
        yield from own(net, which)


def settle(net: Net) -> Net:
    """A wire that loses nothing, agents that reach each other, and time."""
    now = 0
    for _ in range(40):
        now += 1000
        for which in (0, 1):
            wire = net.wires[which]
            net = with_wire(net, which, ())
            for packet in wire:
                net = arrive(net, which, packet)
            path, other = net.ends[which], net.ends[1 - which]
            if path.life is Life.FRESH:
                net = step(net, which, "handle", Kind.WANTED, now)
            elif path.life is Life.DRAINING:
                net = step(net, which, "handle", Kind.DRAINED, now)
            elif path._asked:
                net = step(net, which, "handle", Kind.ALIVE, now)
            elif path._opening.connects and path.life in (*IN_USE, *TRYING):
                alone = other.number != path.number or other.life in DOWN
                if alone and not net.wires[0] and not net.wires[1]:  # its kernel is told
                    net = step(net, which, "handle", Kind.BROKE, now, "reset")
            path = net.ends[which]
            if path.due is not None:
                net = step(net, which, "handle", Kind.TIME, max(now, path.due))
            elif path.life is Life.DOUBTED:
                net = step(net, which, "handle", Kind.HEARD, now)
    return net


class Seen:
    """What an exploration has come across: of every so many nets it was tried that they settle.

    Attributes:
        left: nets of which it is not known what follows.
    """

    def __init__(self, start: Net, generations: int, tried: int, most: int) -> None:
        self.settled = self.crossed = self.half = 0
        known, todo, chance = {start.key()}, [start], Random(1)
        while todo and len(known) < most:
            chosen = chance.randrange(len(todo))  # early ones and late ones
            todo[chosen], todo[-1] = todo[-1], todo[chosen]
            net = todo.pop()
            if len(known) % tried == 0:
                self.settle(net)
            for then in after(net):
                found = then.key()
                if found not in known and max(end.number for end in then.ends) <= generations:
                    known.add(found)
                    todo.append(then)
                    self.count([end.life for end in then.ends])
        self.left = len(todo)

    def settle(self, net: Net) -> None:
        one, other = settle(net).ends
        self.settled += 1
        assert one.life in IN_USE, (net, one.life, other.life)
        assert other.life in IN_USE, (net, one.life, other.life)
        assert one.number == other.number, net

    def count(self, lives: list[Life]) -> None:
        self.crossed += lives == [Life.OPENING, Life.OPENING]
        self.half += any(life in IN_USE for life in lives) and any(life in DOWN for life in lives)


def at_first(opening: Opening, number: int, breaks: int, kept: int) -> Net:
    ends = end_of(opening, senior=True, number=number), end_of(opening, senior=False, number=number)
    return Net(ends, ((), ()), breaks, kept=kept)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("opening", [WORDS, CONNECTIONS], ids=["words", "connections"])
def test_every_order_loss_and_repetition(opening: Opening, number: int) -> None:
    """All there is of one generation more, with one break and one packet each way at a time."""
    start = at_first(opening._replace(tries=1), number, breaks=1, kept=1)
    seen = Seen(start, number + 1, tried=3 if THOROUGH else 97, most=10**6)
    assert not seen.left
    assert seen.settled > 10
    assert seen.half, "ends that had not noticed were among them"
    assert seen.crossed or number, "so were two that began at once"


@pytest.mark.parametrize("breaks", [1, 2])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("opening", [WORDS, CONNECTIONS], ids=["words", "connections"])
def test_orders_of_more_packets_and_breaks(opening: Opening, number: int, breaks: int) -> None:
    """Whoever breaks, and however often: in the end both work in one generation."""
    tried, most = (5, 40_000) if THOROUGH else (29, 3_000)
    seen = Seen(at_first(opening, number, breaks, KEPT), number + breaks + 3, tried, most)
    assert seen.settled > 10
    assert seen.half, "ends that had not noticed were among them"
    assert seen.crossed, "so were two that began at once"


def said(acts: list[Act]) -> list[Do]:
    return [act.what for act in acts]


def down(opening: Opening, *, senior: bool = True, number: int = 1) -> PathLife:
    """An end that has given a working path up, and has nothing left of it."""
    path = end_of(opening, senior=senior, number=number)
    path.handle(Kind.BROKE, 0, "broke")
    path.handle(Kind.DRAINED, 0)
    assert path.life is Life.HOLDING
    return path


def asked(path: PathLife) -> PathLife:
    """The agents have found that the path carries packets, and this end goes first."""
    assert said(path.handle(Kind.TIME, 0)) == [Do.ASK]
    assert said(path.handle(Kind.ALIVE, 0)) == [Do.UNASK]
    assert path.life is Life.WAITING
    return path


def test_three_words_open_a_generation() -> None:
    one, other = asked(down(WORDS)), down(WORDS, senior=False)
    assert said(one.handle(Kind.TIME, 0)) == [Do.RENEW, Do.SAY]
    assert (one.number, one.stage) == (2, Stage.OPENING)
    assert said(other.word(2, Stage.OPENING, 0)) == [Do.RENEW, Do.LEARN, Do.SAY]
    assert (other.number, other.stage) == (2, Stage.AGREEING)
    assert said(one.word(2, Stage.AGREEING, 0)) == [Do.LEARN, Do.SAY, Do.READY]
    assert said(other.word(2, Stage.UP, 0)) == [Do.READY]
    assert said(one.word(2, Stage.AGREEING, 0)) == [Do.SAY], "the answer was lost"
    assert not one.word(2, Stage.UP, 0)


def test_a_late_word_brings_nobody_up() -> None:
    path = down(WORDS)
    assert said(path.word(4, Stage.OPENING, 0)) == [Do.RENEW, Do.LEARN, Do.SAY]
    assert said(path.word(4, Stage.OPENING, 0)) == [Do.SAY], "it is not known who is there"
    assert not path.word(3, Stage.UP, 0)
    assert path.life is Life.AGREEING
    assert said(path.word(5, Stage.OPENING, 0)) == [Do.DROP]
    assert not path.word(5, Stage.OPENING, 0), "what was made for 4 is still there"
    path.handle(Kind.DRAINED, 0)
    assert said(path.word(5, Stage.OPENING, 0)) == [Do.RENEW, Do.LEARN, Do.SAY]
    assert said(path.word(5, Stage.AGREEING, 0)) == [Do.SAY, Do.READY]
    assert not path.word(4, Stage.OPENING, 0), "late"
    failing = path.word(6, Stage.AGREEING, 0)
    assert [(act.what, act.tell_peer) for act in failing] == [(Do.FAIL, False)]


def test_data_is_an_answer_too() -> None:
    path = down(WORDS)
    path.word(2, Stage.OPENING, 0)
    assert said(path.data(0)) == [Do.READY]
    assert not path.data(0)


def test_of_two_connections_that_cross_one_is_made() -> None:
    senior, junior = asked(down(CONNECTIONS)), asked(down(CONNECTIONS, senior=False))
    for path in (senior, junior):
        assert said(path.handle(Kind.TIME, 10)) == [Do.RENEW, Do.SAY]
    assert said(senior.word(2, Stage.OPENING, 10)) == [Do.REFUSE]
    assert said(junior.word(2, Stage.OPENING, 10)) == [Do.DROP, Do.RENEW, Do.TAKE, Do.READY]
    assert said(senior.word(2, Stage.UP, 10)) == [Do.READY]
    assert (senior.number, senior.life) == (junior.number, junior.life) == (2, Life.WORKING)


def test_an_offer_that_was_overtaken_is_refused() -> None:
    path = down(CONNECTIONS, number=3)
    for number in (1, 3):
        assert said(path.word(number, Stage.OPENING, 0)) == [Do.REFUSE]
    assert said(path.word(4, Stage.OPENING, 0)) == [Do.RENEW, Do.TAKE, Do.READY]
    path.handle(Kind.BROKE, 0, "again")
    path.handle(Kind.DRAINED, 0)
    path.handle(Kind.TIME, LIMITS.hold)
    assert path.life is Life.ASKING
    assert said(path.word(4, Stage.OPENING, 0)) == [Do.REFUSE], "that one has worked"


def test_an_attempt_that_came_to_nothing_is_no_generation() -> None:
    path = asked(down(CONNECTIONS))
    path.handle(Kind.TIME, 0)
    assert said(path.handle(Kind.BROKE, 0, "refused")) == [Do.DROP]
    path.handle(Kind.DRAINED, 0)
    assert path.life is Life.PAUSING
    assert path.number == 2
    assert said(path.word(2, Stage.OPENING, 0)) == [Do.RENEW, Do.TAKE, Do.READY]


def test_the_first_connection_is_tried_again_before_anybody_is_told() -> None:
    path = end_of(CONNECTIONS, senior=True, number=0)
    assert said(path.handle(Kind.WANTED, 0)) == [Do.RENEW, Do.SAY]
    assert said(path.handle(Kind.BROKE, 0, "refused")) == [Do.DROP]
    path.handle(Kind.DRAINED, 0)
    assert (path.life, path.due) == (Life.PAUSING, LIMITS.pause)
    assert said(path.handle(Kind.TIME, LIMITS.pause)) == [Do.RENEW, Do.SAY]
    assert path.number == 2, "the peer may have taken the first one"
    assert said(path.handle(Kind.BROKE, 0, "refused")) == [Do.FAIL]


def attempted(tries: int = 2) -> PathLife:
    """An end whose first connection is being made."""
    path = end_of(CONNECTIONS._replace(tries=tries), senior=False, number=0)
    path.handle(Kind.WANTED, 0)
    return path


@pytest.mark.parametrize("kind", [Kind.ENDING, Kind.LEFT])
def test_a_first_connection_is_made_by_an_end_that_takes_nothing_back(kind: Kind) -> None:
    """What waits to be sent would otherwise wait for ever; to who has left there is no other."""
    path = attempted(tries=5)
    path.handle(Kind.ENDING, 0)
    assert said(path.handle(Kind.BROKE, 0, "refused")) == [Do.DROP]
    path.handle(Kind.DRAINED, 0)
    path.handle(kind, 0)
    assert path.life is Life.PAUSING
    assert said(path.handle(Kind.TIME, 100)) == [Do.RENEW, Do.SAY]
    last = said(path.handle(Kind.BROKE, 100, "refused"))
    assert last == [Do.FAIL if kind is Kind.LEFT else Do.DROP]
    path.handle(Kind.DRAINED, 100)
    taken = said(path.word(9, Stage.OPENING, 100))
    assert taken == ([Do.REFUSE] if kind is Kind.LEFT else [Do.RENEW, Do.TAKE, Do.READY])


def test_a_first_connection_that_nobody_needs_is_given_up_without_a_word() -> None:
    path = attempted()
    assert said(path.handle(Kind.BROKE, 0, "refused", wanted=False)) == [Do.DROP]
    path.handle(Kind.DRAINED, 0)
    assert path.life is Life.PAUSING, "not before the attempts are used up"
    path.handle(Kind.TIME, 100)
    assert said(path.handle(Kind.BROKE, 100, "refused", wanted=False)) == [Do.DROP]
    path.handle(Kind.DRAINED, 100)
    assert (path.life, path.due, path.told_broken) == (Life.FRESH, None, False)
    assert said(path.handle(Kind.WANTED, 200)) == [Do.RENEW, Do.SAY]
    assert path.number == 3


def test_without_hope_there_is_no_other_attempt() -> None:
    path = attempted()
    assert said(path.handle(Kind.BROKE, 0, "the link is down", final=True)) == [Do.FAIL]
    path = attempted()
    path.handle(Kind.TIME, 10)
    assert said(path.handle(Kind.DEAD, 10, "nothing gets through")) == [Do.UNASK, Do.FAIL]


def test_a_peer_that_computes_takes_a_connection_as_late_as_it_likes() -> None:
    path = attempted()
    assert said(path.handle(Kind.TIME, 10)) == [Do.ASK]
    for turn in range(50):
        assert not path.handle(Kind.TIME, 100 * turn)
    assert said(path.word(1, Stage.UP, 9000)) == [Do.UNASK, Do.READY]


def test_the_pauses_of_first_attempts_are_their_own() -> None:
    path = end_of(
        CONNECTIONS._replace(repeat=0, tries=9, pause=3, pause_max=10), senior=True, number=0
    )
    path.handle(Kind.WANTED, 0)
    assert path.due is None, "nobody is asked"
    pauses = []
    for _ in range(4):
        path.handle(Kind.BROKE, 0, "refused")
        path.handle(Kind.DRAINED, 0)
        pauses.append(path.due)
        path.handle(Kind.TIME, 0)
    assert pauses == [3, 6, 10, 10]


def test_words_without_an_answer_are_an_attempt_that_failed() -> None:
    path = end_of(WORDS, senior=True, number=0)
    path.handle(Kind.WANTED, 0)
    assert path.due == 10
    assert said(path.handle(Kind.TIME, 10)) == [Do.ASK, Do.SAY]
    assert path.due == 30, "twice as long"
    assert said(path.handle(Kind.TIME, 30)) == [Do.SAY]
    last = path.handle(Kind.TIME, 70)
    assert said(last) == [Do.UNASK, Do.FAIL]
    assert last[-1].reason == "no answer"


def test_a_peer_that_computes_answers_nothing_for_as_long_as_its_path_is_alive() -> None:
    path = end_of(WORDS, senior=True, number=0)
    path.handle(Kind.WANTED, 0)
    path.handle(Kind.TIME, 10)
    path.handle(Kind.ALIVE, 11)
    for turn in range(50):
        assert said(path.handle(Kind.TIME, 100 * turn)) == [Do.SAY]
    assert said(path.handle(Kind.DEAD, 5000, "nothing gets through")) == [Do.UNASK, Do.FAIL]


def test_a_notice_is_about_one_generation() -> None:
    path = end_of(WORDS, senior=True, number=5)
    assert not path.notice(4, "late", 0)
    (act,) = path.notice(5, "the other end has given the path up", 0)
    assert (act.what, act.tell_peer) == (Do.FAIL, False)
    assert not path.notice(5, "again", 0)


def test_a_path_that_breaks_too_often_is_left_alone() -> None:
    path = down(WORDS)
    assert path.due == 0
    assert said(path.word(2, Stage.OPENING, 0)) == [Do.RENEW, Do.LEARN, Do.SAY]
    path.word(2, Stage.UP, 0)
    path.handle(Kind.BROKE, 0, "again")
    path.handle(Kind.DRAINED, 0)
    assert (path.life, path.due) == (Life.HOLDING, LIMITS.hold)
    assert not path.word(3, Stage.OPENING, 1), "nor when the peer asks for it"


def test_an_attempt_that_followed_the_peer_and_broke_costs_a_pause_and_not_the_hold_again() -> None:
    """A word over a connection that had broken unseen: ofi's rail that was cut twice."""
    path = down(WORDS)
    path.word(2, Stage.OPENING, 0)
    path.word(2, Stage.UP, 0)
    path.handle(Kind.BROKE, 0, "again")
    path.handle(Kind.DRAINED, 0)
    asked = path.due
    assert asked == LIMITS.hold
    path.handle(Kind.TIME, asked)
    assert said(path.word(3, Stage.OPENING, asked))[-1] is Do.SAY
    assert said(path.handle(Kind.BROKE, asked, "reset by peer")) == [Do.DROP]
    path.handle(Kind.DRAINED, asked)
    assert path.life is Life.PAUSING
    assert path.due is not None
    assert path.due - asked < 2 * LIMITS.pause
    assert said(path.word(4, Stage.OPENING, asked))[-1] is Do.SAY, "the peer may try again"


def test_the_higher_rank_waits_longer_the_first_time() -> None:
    path = down(WORDS, senior=False)
    path.handle(Kind.TIME, 0)
    path.handle(Kind.ALIVE, 100)
    assert path.due == 100 + LIMITS.late
    path.handle(Kind.TIME, path.due)
    path.handle(Kind.BROKE, 200, "no room")
    path.handle(Kind.DRAINED, 200)
    assert path.due == 200 + LIMITS.pause
    path.handle(Kind.TIME, path.due)
    path.handle(Kind.ALIVE, 300)
    assert path.due == 300


@pytest.mark.parametrize("kind", [Kind.LEFT, Kind.ENDING])
def test_nothing_is_taken_back_in_the_end(kind: Kind) -> None:
    path = end_of(WORDS, senior=True, number=1)
    assert not path.handle(kind, 0)
    assert path.life is Life.WORKING, "what is under way may still come to its end"
    assert said(path.handle(Kind.BROKE, 0, "gone")) == [Do.FAIL]
    path.handle(Kind.DRAINED, 0)
    assert (path.life, path.due) == (Life.OVER, None)
    assert not path.word(9, Stage.OPENING, 0)
    waiting = down(WORDS)
    waiting.handle(kind, 0)
    assert waiting.life is Life.OVER


def test_healing_that_is_off() -> None:
    never = PathLife(LIMITS._replace(answers=0), WORDS, Still(), senior=True, number=1)
    never.handle(Kind.BROKE, 0, "broke")
    never.handle(Kind.DRAINED, 0)
    assert (never.life, never.due) == (Life.HOLDING, None)
    assert not never.word(2, Stage.OPENING, 0)
