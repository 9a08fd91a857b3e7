"""Agreement that survives deaths: every death at every step, and several by chance.

A world here is members, channels between each two that keep the order, and news of deaths that come
at any time. Who dies takes along what it has not sent: of the messages of its last step any number
got out, and what was under way may arrive after the news of its death, or never.
"""

from __future__ import annotations

from copy import copy
from random import Random
from typing import Any

import pytest
from ompy.frameworks.fault_tolerance.consensus import Consensus, Note, Say, Value, answer_when_over

from tests.support.effort import THOROUGH, effort


class Members:
    """Some members of one agreement, and what is under way between them."""

    def __init__(self, count: int) -> None:
        self.machines = [Consensus(me, range(count)) for me in range(count)]
        self.begun: set[int] = set()
        self.dead: set[int] = set()
        self.wires: dict[tuple[int, int], list[Note]] = {}
        self.news: set[tuple[int, int]] = set()  # whom the news of whose death has yet to reach
        self.decisions: dict[int, Value] = {}  # of the dead, too
        self.forgets = False  # members keep nothing of what they have decided

    def copy(self) -> Members:
        """Another world that is as this one is."""
        made = copy(self)
        made.machines = [_copy_of(machine) for machine in self.machines]
        made.begun, made.dead, made.news = set(self.begun), set(self.dead), set(self.news)
        made.wires = {pair: list(wire) for pair, wire in self.wires.items()}
        made.decisions = dict(self.decisions)
        return made

    def moves(self) -> list[tuple[str, int, int]]:
        """All that may happen next, but for deaths."""
        count = len(self.machines)
        living = [m for m in range(count) if m not in self.dead]
        begins = [("begin", m, m) for m in living if m not in self.begun]
        hears = [("hear", a, b) for (a, b), wire in sorted(self.wires.items()) if wire]
        news = [("news", a, b) for a, b in sorted(self.news)]
        return begins + [move for move in hears + news if move[2] not in self.dead]

    def make(self, move: tuple[str, int, int], sent: int | None = None) -> None:
        """Something happens; given `sent`, it is the last of that member, of which so many go."""
        what, source, target = move
        machine = self.machines[target]
        if what == "begin":
            self.begun.add(target)
            out = machine.begin_saying(b"%d" % target)
        elif what == "news":
            self.news.discard((source, target))
            out = machine.lose(source)
        else:
            note = self.wires[source, target].pop(0)
            over = machine.decided and self.forgets
            out = answer_when_over(note) if over else machine.hear(note)
        if machine.decided:
            self.decisions.setdefault(target, machine.value)
        for note in out if sent is None else out[:sent]:
            assert note.peer != target
            self.wires.setdefault((target, note.peer), []).append(note._replace(peer=target))
        if sent is not None:
            self.kill(target)

    def kill(self, member: int) -> None:
        self.dead.add(member)
        self.news |= {(member, m) for m in range(len(self.machines)) if m not in self.dead}

    def lose_wires(self, chance: Random) -> None:
        """Of what the dead have sent some is lost, from a point on in each channel."""
        for (source, _), wire in self.wires.items():
            if source in self.dead and wire:
                del wire[chance.randint(0, len(wire)) :]

    def wires_of_the_dead(self) -> list[tuple[int, int]]:
        """Those on which something is under way that may never arrive."""
        return [wire for wire, notes in self.wires.items() if notes and wire[0] in self.dead]

    def without(self, wire: tuple[int, int]) -> Members:
        """The world in which what is under way there is lost."""
        after = self.copy()
        after.wires[wire] = []
        return after

    def check_end(self) -> None:
        """All survivors have decided, and everybody the same."""
        living = [m for m in range(len(self.machines)) if m not in self.dead]
        assert all(self.machines[m].decided for m in living), "a survivor waits"
        values = set(self.decisions.values())
        assert len(values) <= 1, values
        for value in values:
            said = dict(value)
            assert all(said.get(m) == b"%d" % m for m in living)

    def key(self) -> Any:
        """What distinguishes this world from others, for the future."""
        machines = tuple(
            (
                m.standing,
                m.value,
                m._round,
                m._accepted,
                m._proposed,
                frozenset(m._gone),
                frozenset(m._votes.items()),
                frozenset(m._accepts),
            )
            for m in self.machines
        )
        wires = frozenset((pair, tuple(wire)) for pair, wire in self.wires.items() if wire)
        decided = frozenset(self.decisions.items())
        return (
            machines,
            wires,
            decided,
            frozenset(self.news),
            frozenset(self.dead),
            frozenset(self.begun),
        )


def _copy_of(machine: Consensus) -> Consensus:
    made = copy(machine)
    made._gone, made._accepts = set(machine._gone), set(machine._accepts)
    made._votes = dict(machine._votes)
    return made


def explore(count: int, deaths: int) -> int:
    """Every order of everything, with at most so many deaths; how many worlds that were."""
    start = Members(count)
    start.forgets = True
    seen = {start.key()}
    rest = [start]
    while rest:
        world = rest.pop()
        moves = world.moves()
        if not moves:
            world.check_end()
        follow = [world.without(wire) for wire in world.wires_of_the_dead()]
        for move in moves:
            after = world.copy()
            after.make(move)
            follow.append(after)
            if len(world.dead) < deaths:
                follow += _dying(world, move)
        for after in follow:
            key = after.key()
            if key not in seen:
                seen.add(key)
                rest.append(after)
    return len(seen)


def _dying(world: Members, move: tuple[str, int, int]) -> list[Members]:
    """A member dies in a step: worlds for each number of messages that it still sends."""
    found: list[Members] = []
    sent = 0
    while True:
        after = world.copy()
        whole = world.copy()
        whole.make(move)
        out = sum(map(len, whole.wires.values())) - sum(map(len, world.wires.values()))
        out += move[0] == "hear"
        after.make(move, sent)
        found.append(after)
        sent += 1
        if sent > out:
            return found


@pytest.mark.parametrize(
    ("count", "deaths", "worlds"),
    [(2, 1, 51), (3, 0, 29), (3, 2, 8106), *([(4, 1, 27500)] if THOROUGH else [])],
)
def test_every_order_and_every_death(count: int, deaths: int, worlds: int) -> None:
    assert explore(count, deaths) == worlds


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("order", ["first", "last", "low", "high", *range(effort(4))])
def test_every_death_at_every_step(count: int, order: str | int, forgets: bool) -> None:
    """One death: of each member, at each step of several orders, with each part of its messages."""
    steps = _run(count, order, forgets=forgets).steps
    assert steps >= 5 * (count - 1)
    for victim in range(count):
        for step in range(steps):
            for sent in range(2 * count):
                _run(count, order, forgets=forgets, deaths={victim: (step, sent)})


@pytest.mark.parametrize("count", [3, 4, 5])
def test_several_deaths(count: int) -> None:
    for seed in range(effort(1500)):
        chance = Random(seed)
        deaths = {
            victim: (chance.randrange(8 * count), chance.randrange(count))
            for victim in chance.sample(range(count), chance.randint(1, count - 1))
        }
        _run(count, seed, forgets=bool(seed % 2), deaths=deaths, lossy=bool(seed % 3))


class _Ran:
    def __init__(self, world: Members, steps: int) -> None:
        self.world, self.steps = world, steps


def _run(
    count: int,
    order: str | int,
    *,
    forgets: bool = False,
    deaths: dict[int, tuple[int, int]] | None = None,
    lossy: bool = False,
) -> _Ran:
    """One world: victims die in their first step from the one given on."""
    world = Members(count)
    world.forgets = forgets
    chance = Random(order)
    steps = 0
    while moves := world.moves():
        move = _chosen(moves, order, chance)
        step, sent = (deaths or {}).get(move[2], (-1, 0))
        if 0 <= step <= steps:
            world.make(move, sent)
            if lossy:
                world.lose_wires(chance)
        else:
            world.make(move)
        steps += 1
    world.check_end()
    return _Ran(world, steps)


def _chosen(
    moves: list[tuple[str, int, int]], order: str | int, chance: Random
) -> tuple[str, int, int]:
    match order:
        case "first":
            return moves[0]
        case "last":
            return moves[-1]
        case "low":
            return min(moves, key=lambda move: move[2])
        case "high":
            return max(moves, key=lambda move: move[2])
    return chance.choice(moves)


def test_without_a_death_everybody_has_said_something() -> None:
    world = _run(4, "first").world
    assert dict(world.machines[2].value) == {m: b"%d" % m for m in range(4)}


def test_one_alone_decides_at_once() -> None:
    machine = Consensus(5, [3, 5], gone=[3])
    assert machine.begin_saying(b"x") == []
    assert machine.decided
    assert machine.value == ((5, b"x"),)


def test_what_was_decided_by_one_who_died_is_what_the_others_decide() -> None:
    """0 decides and tells only 1, which dies: 2 has accepted, and may decide nothing else."""
    machine = Consensus(2, range(3))
    machine.begin_saying(b"2")
    value: Value = ((0, b"0"), (1, b"1"), (2, b"2"))
    assert machine.hear(Note(0, Say.PROPOSE, 0, value=value)) == [Note(0, Say.ACCEPT, 0)]
    machine.lose(0)
    machine.lose(1)
    assert machine.decided
    assert machine.value == value


def test_a_proposal_of_an_earlier_round_is_not_accepted() -> None:
    machine = Consensus(2, range(3))
    machine.begin_saying(b"2")
    assert [note.peer for note in machine.lose(0)] == [1]
    assert machine.hear(Note(0, Say.PROPOSE, 0, value=((0, b"0"),))) == []
