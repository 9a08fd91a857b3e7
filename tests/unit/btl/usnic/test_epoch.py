"""How both ends of a path come to a new epoch: the table, and every order, loss and repetition."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import pytest
from ompy_components.btl.usnic.epoch import (
    TABLE,
    Epoch,
    EpochEvent,
    Stage,
    Step,
    WrongStage,
    follow,
)

from tests.support.effort import THOROUGH

KEPT = 2  # packets under way to an end; that older ones are lost is one of the cases
Packet = tuple[str, int, Stage]  # OPEN or DATA


def test_all_pairs_of_stage_and_event() -> None:
    impossible = {pair for pair in product(Stage, EpochEvent) if pair not in TABLE}
    assert impossible == {
        (Stage.OPENING, EpochEvent.BROKE),  # what is not in use cannot break
        (Stage.AGREEING, EpochEvent.BROKE),
        (Stage.DOWN, EpochEvent.BROKE),
        (Stage.DOWN, EpochEvent.ASKED),  # the epoch it is down in is over
        (Stage.DOWN, EpochEvent.ANSWERED),
    }
    for stage, event in impossible:
        with pytest.raises(WrongStage, match=f"{stage.name} cannot be told {event.value}"):
            follow(stage, event)


class End(NamedTuple):
    """An end as it is, and what is under way to it."""

    number: int
    stage: Stage
    wire: tuple[Packet, ...]


class Net(NamedTuple):
    """Two ends; `breaks` that are still to come."""

    ends: tuple[End, End]
    breaks: int


def act(net: Net, which: int, machine: Epoch, steps: list[Step]) -> Net:
    """What the driver does about steps of one end. Invariants of every step are looked at."""
    ends = list(net.ends)
    one, other = ends[which], ends[1 - which]
    said = list(other.wire)
    for step in steps:
        if step is Step.FAIL:
            machine.broke()
        elif step is Step.SAY:
            packet = "OPEN", machine.number, machine.stage
            if packet not in said:
                said.append(packet)
        elif step is Step.READY:
            assert other.number >= machine.number, "UP where the other end has never been"
            there = other.number, other.stage
            assert there != (machine.number, Stage.OPENING), "the other end has not heard of it"
        else:
            assert machine.number > one.number, "an epoch was begun twice"
    ends[which] = End(machine.number, machine.stage, one.wire)
    ends[1 - which] = other._replace(wire=tuple(said[-KEPT:]))
    return Net((ends[0], ends[1]), net.breaks)


def machine_of(end: End) -> Epoch:
    made = Epoch()
    made.number, made.stage = end.number, end.stage
    return made


def arrive(net: Net, which: int, packet: Packet) -> Net:
    kind, number, stage = packet
    machine = machine_of(net.ends[which])
    if kind == "OPEN":
        return act(net, which, machine, machine.heard(number, stage))
    if number == machine.number and machine.unsettled:
        return act(net, which, machine, machine.data())
    return net  # taken, or of another epoch


def transmit(net: Net, which: int) -> Net:
    """An end that is UP sends a packet."""
    sender, receiver = net.ends[which], net.ends[1 - which]
    packet = "DATA", sender.number, Stage.UP
    wire = (*(one for one in receiver.wire if one != packet), packet)[-KEPT:]
    ends = list(net.ends)
    ends[1 - which] = receiver._replace(wire=wire)
    return Net((ends[0], ends[1]), net.breaks)


def with_wire(net: Net, which: int, wire: tuple[Packet, ...]) -> Net:
    ends = list(net.ends)
    ends[which] = ends[which]._replace(wire=wire)
    return Net((ends[0], ends[1]), net.breaks)


def after(net: Net) -> list[Net]:
    """Everything that can happen next: arrival, loss, repetition, a break, time."""
    found = []
    for which, end in enumerate(net.ends):
        for packet in end.wire:
            rest = tuple(other for other in end.wire if other != packet)
            found.append(arrive(with_wire(net, which, rest), which, packet))
            found.append(arrive(net, which, packet))  # it comes again later
            found.append(with_wire(net, which, rest))
        machine = machine_of(end)
        if end.stage is Stage.DOWN:
            found.append(act(net, which, machine, machine.want()))
        elif end.stage is Stage.UP:
            found.append(transmit(net, which))
            if net.breaks:
                machine.broke()
                found.append(act(net._replace(breaks=net.breaks - 1), which, machine, []))
        else:
            found.append(act(net, which, machine, [Step.SAY]))
    return found


def settle(net: Net, menders: tuple[int, ...]) -> Net:
    """A wire that loses nothing, and time; ends of `menders` want their path back."""
    for _ in range(30):
        for which in (0, 1):
            end = net.ends[which]
            machine = machine_of(end)
            if end.stage is Stage.DOWN and which in menders:
                net = act(net, which, machine, machine.want())
            elif machine.unsettled:
                net = act(net, which, machine, [Step.SAY])
            wire = net.ends[which].wire
            net = with_wire(net, which, ())
            for packet in wire:
                net = arrive(net, which, packet)
    return net


@pytest.mark.parametrize("breaks", [1, 2])
def test_every_order_loss_and_repetition(breaks: int) -> None:
    """Whoever breaks, and however often: in the end both are up in one epoch."""
    start = Net((End(0, Stage.UP, ()), End(0, Stage.UP, ())), breaks)
    known = {start}
    todo = [start]
    crossed = half = 0
    while todo:
        net = todo.pop()
        stages = [end.stage for end in net.ends]
        crossed += stages == [Stage.OPENING, Stage.OPENING]
        half += Stage.UP in stages and Stage.DOWN in stages
        if len(known) % (1 if THOROUGH else 24) == 0:
            for menders in ((0,), (1,), (0, 1)):
                one, other = settle(net, menders).ends
                alone = net.ends[1 - menders[0]].stage is Stage.DOWN and len(menders) == 1
                if Stage.DOWN in stages and alone and net.ends[menders[0]].stage is Stage.UP:
                    continue  # only the end that knows could begin, and it does not want to
                assert (one.stage, other.stage) == (Stage.UP, Stage.UP), (menders, net)
                assert one.number == other.number, (menders, net)
        for then in after(net):
            if then not in known and max(end.number for end in then.ends) <= breaks + 2:
                known.add(then)
                todo.append(then)
    assert len(known) > 500
    assert crossed, "two that began at once were among them"
    assert half, "so were ends that had not noticed"


def test_a_late_open_brings_nobody_up() -> None:
    end = Epoch()
    end.broke()
    assert end.heard(4, Stage.OPENING) == [Step.RENEW, Step.SAY]
    assert (end.number, end.stage) == (4, Stage.AGREEING)
    assert end.heard(4, Stage.OPENING) == [Step.SAY], "it is still not known who is there"
    assert end.heard(3, Stage.UP) == []
    assert end.stage is Stage.AGREEING
    assert end.heard(5, Stage.OPENING) == [Step.RENEW, Step.SAY], "the peer has moved on"
    assert end.heard(5, Stage.AGREEING) == [Step.SAY, Step.READY]
    assert end.heard(5, Stage.AGREEING) == [Step.SAY], "the answer was lost"
    assert end.heard(4, Stage.OPENING) == [], "late"
    assert end.heard(6, Stage.AGREEING) == [Step.FAIL]


def test_a_peer_whose_epoch_is_over_is_shown_a_new_one() -> None:
    end = Epoch()
    end.broke()
    assert end.heard(0, Stage.UP) == [], "it has not noticed, and asks for nothing"
    assert end.heard(0, Stage.AGREEING) == [Step.RENEW, Step.SAY]
    assert (end.number, end.stage) == (1, Stage.OPENING)
