"""Partitioned messages, drawn: partitions of both sides, orders, layouts, several at a time.

The model: a partition of the receiver has arrived exactly when all of the sender's partitions that
touch it are ready, which it is told in bounded time; and what has arrived is what was sent.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.net.faults.fault_rules import FaultRule
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.bfo.test_mixtures import RAILS, settings_of
from tests.support.effort import effort
from tests.support.scripted_world import install
from tests.support.worlds import registry, virtual

BTLS = ("self,sm", "self,tcp", "self,usnic", "self,openib")
ITEMS = (1, 7, 600)  # numbers in a twelfth of a message: eager, and by rendezvous
DIVISORS = (1, 2, 3, 4, 6, 12)
TAGS = (0, 5)
ROUNDS = 2
PAUSE = 100_000  # ns; arbitrary: a rail that goes is noticed after many of a poll's few


class Channel(NamedTuple):
    """One partitioned message.

    Attributes:
        sent: partitions of the sender.
        received: partitions of the receiver.
        items: numbers in a twelfth of it.
        tag: of the user.
        columns: the receiver stores it with gaps.
        order: of the sender's partitions.
    """

    sent: int
    received: int
    items: int
    tag: int
    columns: bool
    order: list[int]

    @property
    def total(self) -> int:
        return 12 * self.items

    def touching(self, part: int) -> set[int]:
        """The sender's partitions that touch one of the receiver's."""
        ours, theirs = self.total // self.received, self.total // self.sent
        return {each // theirs for each in range(part * ours, (part + 1) * ours)}


@st.composite
def channels(draw: Any) -> Channel:
    sent = draw(st.sampled_from(DIVISORS))
    return Channel(
        sent,
        draw(st.sampled_from(DIVISORS)),
        draw(st.sampled_from(ITEMS)),
        draw(st.sampled_from(TAGS)),
        draw(st.booleans()),
        draw(st.permutations(range(sent))),
    )


def content(number: int, round_: int, channel: Channel) -> np.ndarray:
    return np.arange(channel.total, dtype="f8") + 1e6 * number + 1e8 * round_


class Sender:
    """Rank 0: makes partitions ready one at a time, in step with the receiver or not."""

    def __init__(self, comm: Any, drawn: list[Channel]) -> None:
        self.comm, self.drawn = comm, drawn
        self.out = [np.zeros(each.total) for each in drawn]
        self.requests = [
            comm.Psend_init(room, each.sent, 1, each.tag)
            for room, each in zip(self.out, drawn, strict=True)
        ]

    def play(self, round_: int, order: list[tuple[int, int]], step: bool) -> None:
        for number, channel in enumerate(self.drawn):
            self.out[number][:] = content(number, round_, channel)
        MPI.Prequest.Startall(self.requests)
        for number, part in order:
            self.requests[number].Pready(part)
            if step:
                self.comm.Barrier()
                self.comm.Barrier()
        MPI.Request.Waitall(self.requests)
        for room in self.out:
            room[:] = -2  # the memory is the sender's again


class Receiver:
    """Rank 1: looks at every partition after every step."""

    def __init__(self, comm: Any, drawn: list[Channel]) -> None:
        self.comm, self.drawn = comm, drawn
        self.engine = comm._state().world.engine
        self.into = [np.zeros((each.total, 2 if each.columns else 1)) for each in drawn]
        spread = MPI.DOUBLE.Create_resized(0, 16).Commit()
        self.requests = [
            comm.Precv_init(
                [room, each.total // each.received, spread if each.columns else MPI.DOUBLE],
                each.received,
                0,
                each.tag,
            )
            for room, each in zip(self.into, drawn, strict=True)
        ]

    def play(self, round_: int, order: list[tuple[int, int]], step: bool) -> None:
        for room in self.into:
            room[:] = -1
        MPI.Prequest.Startall(self.requests[::-1])
        ready: set[tuple[int, int]] = set()
        for made in order if step else ():
            ready.add(made)
            self.comm.Barrier()
            self.look(round_, ready)
            self.comm.Barrier()
        if not step:
            self.look(round_, set(order))
        MPI.Request.Waitall(self.requests)
        for number, channel in enumerate(self.drawn):
            assert (self.into[number][:, 0] == content(number, round_, channel)).all()
            if channel.columns:
                assert (self.into[number][:, 1] == -1).all()

    def look(self, round_: int, ready: set[tuple[int, int]]) -> None:
        for number, channel in enumerate(self.drawn):
            size = channel.total // channel.received
            for part in range(channel.received):
                want = {(number, each) for each in channel.touching(part)} <= ready
                piece = slice(part * size, (part + 1) * size)
                while want and not self.requests[number].Parrived(part):
                    self.engine.spend(PAUSE)
                if want:
                    found = self.into[number][piece, 0]
                    assert (found == content(number, round_, channel)[piece]).all()
                else:
                    assert not self.requests[number].Parrived(part)


def program(drawn: list[Channel], seed: int, step: bool, late: int) -> Any:
    def body(process: RankProcess) -> None:
        comm = world_of(process)
        if comm.rank == late:
            process.context.engine.spend(2_000_000)
        side = (Sender, Receiver)[comm.rank](comm, drawn)
        chance = Random(seed)  # the same on both sides
        for round_ in range(ROUNDS):
            left = [list(each.order) for each in drawn]
            order = []
            while any(left):
                number = chance.choice([n for n, each in enumerate(left) if each])
                order.append((number, left[number].pop()))
            side.play(round_, order, step)
        for request in side.requests:
            request.Free()

    return body


DRAWN = st.lists(channels(), min_size=1, max_size=3)


@given(DRAWN, st.integers(0, 1000), st.booleans(), st.sampled_from((0, 1, 2)))
@settings(max_examples=effort(3), deadline=None)
@pytest.mark.parametrize("btl", BTLS)
def test_what_is_ready_arrives(
    btl: str, drawn: list[Channel], seed: int, step: bool, late: int
) -> None:
    virtual(2, program(drawn, seed, step, late), seed=seed, btl=btl)


@given(DRAWN, st.integers(0, 1000), st.sampled_from(("link_down", "black_hole")))
@settings(max_examples=effort(2), deadline=None)
@pytest.mark.parametrize("pair", [("tcp", "tcp"), ("usnic", "tcp")], ids="-".join)
def test_a_rail_goes_meanwhile(
    pair: tuple[str, str], drawn: list[Channel], seed: int, kind: str
) -> None:
    """With bfo the partitions go again over the other rail; none is lost or doubled."""
    chance = Random(seed)
    rail = chance.choice(RAILS).name
    job = VirtualJob(2, registry(**settings_of(pair)), seed=seed, rails=RAILS, hosts=[0, 1])
    rule = FaultRule(kind, rails=(rail,), since=chance.randrange(1, 2_000_000))
    install(job, [rule])
    job.run(program(drawn, seed, True, 2))
