"""Who connects to whom: the table, and two ends under every order, loss and repetition."""

from __future__ import annotations

from copy import copy
from itertools import product
from typing import NamedTuple

import pytest
from ompy.frameworks.nic.verbs import Destination
from ompy_components.btl.openib.connection import (
    BadHello,
    Connection,
    Hello,
    Step,
    pack,
    unpack,
)
from ompy_components.btl.openib.states import TRANSITIONS, Event, NoTransition, State, after

from tests.support.effort import THOROUGH


def pairs(end: int, attempt: int) -> tuple[Destination, ...]:
    """Queue pairs whose numbers say whose they are, and of which attempt."""
    return (Destination(end + 1, 100 * end + attempt, f"host{end}", 7, 5),)


def test_all_pairs_of_state_and_event() -> None:
    impossible = {pair for pair in product(State, Event) if pair not in TRANSITIONS}
    assert impossible == {
        (State.CLOSED, Event.HEARD),  # there is no queue pair
        (State.CONNECTING, Event.HEARD),  # it does not receive yet
        *((state, Event.CLEARED) for state in State if state is not State.FAILED),
    }
    for state, event in impossible:
        with pytest.raises(NoTransition, match=f"{event.name} in {state.name}"):
            after(state, event)
    assert {after for (_, event), after in TRANSITIONS.items() if event is Event.BROKEN} == {
        State.FAILED
    }


def test_hello_there_and_back() -> None:
    several = tuple(Destination(3, number, "10.0.0.1", 4711, number) for number in range(5))
    hello = Hello(7, 3, True, several)
    data = pack(hello)
    assert unpack(memoryview(data)) == hello
    for other in (data[:-1], data + b"\0", data[:5], b"", b"\x09" + data[1:]):
        with pytest.raises(BadHello):
            unpack(memoryview(other))


class Net(NamedTuple):
    """Two ends, and what is under way between them."""

    ends: tuple[Connection, Connection]
    wires: tuple[tuple[Hello, ...], tuple[Hello, ...]]  # to each end

    def key(self) -> object:
        def of(end: Connection) -> object:
            return end.state, end.attempt, end.heard, end._latest, end.wanted

        return of(self.ends[0]), of(self.ends[1]), self.wires


def play(net: Net, end: int, steps: list[Step], one: Connection) -> Net:
    """What the connection manager does, without a device."""
    said = list(net.wires[1 - end])
    for step in steps:
        if step is Step.CONNECT:
            assert one.pairs[0].number == 100 * (1 - end) + one.heard
        elif step is Step.SAY:
            hello = one.say(pairs(end, one.attempt))
            if hello not in said:
                said.append(hello)
        elif step is Step.FAIL:
            one.broken()
            one.cleared()
    ends = (one, net.ends[1]) if end == 0 else (net.ends[0], one)
    kept = tuple(said[-2:])  # that older ones are lost is one of the cases
    wires = (net.wires[0], kept) if end == 0 else (kept, net.wires[1])
    return Net(ends, wires)


def follow(net: Net, breaks: int) -> list[tuple[Net, int]]:
    """Every next situation: any HELLO arrives, is lost, comes twice; an end wants or repeats."""
    found = []
    for end in (0, 1):
        for hello in net.wires[end]:
            rest = tuple(other for other in net.wires[end] if other is not hello)
            one = copy(net.ends[end])
            steps = one.hello(hello)
            for left in (rest, net.wires[end]):  # once, or it will come again
                wires = (left, net.wires[1]) if end == 0 else (net.wires[0], left)
                found.append((play(Net(net.ends, wires), end, steps, copy(one)), breaks))
            wires = (rest, net.wires[1]) if end == 0 else (net.wires[0], rest)
            found.append((Net(net.ends, wires), breaks))
        one = copy(net.ends[end])
        found.append((play(net, end, one.want(), one), breaks))
        if net.ends[end].unsettled:
            found.append((play(net, end, [Step.SAY], copy(net.ends[end])), breaks))
        if breaks and net.ends[end].state is not State.CLOSED:
            one = copy(net.ends[end])
            one.broken()
            one.cleared()
            found.append((play(net, end, [], one), breaks - 1))
    return found


def _deceived(net: Net, end: int) -> bool:
    """Whether an end takes itself for connected and the other one's queue pairs are gone."""
    one, other = net.ends[end], net.ends[1 - end]
    bound = (one.heard, one.attempt) == (other.attempt, other.heard)
    return one.up and not (bound and other.state is not State.CLOSED)


def settle(net: Net, wanting: tuple[int, ...]) -> Net:
    """A wire that loses nothing, and time: what both ends come to when these want to send."""
    for _ in range(40):
        if all(end.up for end in net.ends) and not (any(net.wires) or _deceived(net, 0)):
            break
        for end in (0, 1):
            if end in wanting:
                one = copy(net.ends[end])
                net = play(net, end, one.want(), one)
            if _deceived(net, end):  # what it sends fails
                net = play(net, end, [Step.FAIL], copy(net.ends[end]))
            if net.ends[end].unsettled:
                net = play(net, end, [Step.SAY], copy(net.ends[end]))
            hellos = net.wires[end]
            net = Net(net.ends, ((), net.wires[1]) if end == 0 else (net.wires[0], ()))
            for hello in hellos:
                one = copy(net.ends[end])
                net = play(net, end, one.hello(hello), one)
    return net


@pytest.mark.parametrize("breaks", [0, 1] if not THOROUGH else [0, 1, 2])
def test_every_order_loss_and_repetition_ends_connected(breaks: int) -> None:
    """Whoever begins, however often an end breaks: at last both are connected to each other."""
    start = Net((Connection(), Connection()), ((), ()))
    known = {(start.key(), breaks)}
    todo = [(start, breaks)]
    crossed = 0
    while todo:
        net, left = todo.pop()
        crossed += all(end.state is State.WAITING_ACK for end in net.ends)
        # in CI some of them: what is hard to get out of can be got into in many ways
        for wanting in (
            ((0,), (1,), (0, 1)) if not breaks or THOROUGH or len(known) % 8 == 0 else ()
        ):
            one, other = settle(net, wanting).ends
            assert one.up, (wanting, net.key())
            assert other.up, (wanting, net.key())
            assert (one.heard, other.heard) == (other.attempt, one.attempt), net.key()
            assert breaks or one.attempt == other.attempt == 1, "began anew for no reason"
        for after_, rest in follow(net, left):
            key = after_.key(), rest
            if key not in known and max(end.attempt for end in after_.ends) <= 2 + breaks:
                known.add(key)
                todo.append((after_, rest))
    assert crossed, "two that begin at once were among them"


def test_a_connection_the_peer_gave_up_is_broken() -> None:
    end = Connection()
    end.want()
    end.hello(Hello(1, 1, False, pairs(1, 1)))
    assert end.up
    assert end.hello(Hello(2, 0, False, pairs(1, 2))) == [Step.FAIL]
    end.broken()
    assert end.hello(Hello(2, 0, False, pairs(1, 2))) == []
    assert end.wanted, "the next one can begin at once"
    end.cleared()
    assert end.hello(Hello(1, 1, True, pairs(1, 1))) == [], "of the connection before"
    assert end.hello(Hello(2, 0, False, pairs(1, 2))) == [Step.MAKE, Step.CONNECT, Step.SAY]
    assert end.data() == [Step.READY]
    assert end.data() == []
