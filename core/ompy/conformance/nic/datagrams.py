"""Datagrams: messages between queue pairs, and what becomes of each post."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import ClassVar, Final

import pytest

from ompy.conformance.nic.nic_worlds import (
    DEPTH,
    SECOND,
    MakeWorld,
    NicSuite,
    Station,
)
from ompy.conformance.payloads import assert_same_bytes, payload
from ompy.frameworks.nic.base import EventKind, LinkState, Nic, NicError
from ompy.frameworks.nic.datagram import Status, Work
from ompy.net.faults.middleware import Cut, Drop, Duplicate, Reorder

SHORT: Final = 40  # bytes; arbitrary: less than any packet
PAUSE: Final = SECOND // 100  # ns; arbitrary: a thousand times a packet's way
LATE: Final = 100_000  # ns; arbitrary: several times a packet's way
GUARD: Final = 0x5A  # arbitrary


class DatagramSuite(NicSuite):
    """Of devices that have queue pairs for unreliable messages."""

    title: ClassVar[str] = "datagrams"

    def test_sizes(self, datagrams: MakeWorld) -> None:
        """Messages of every size that arrive are as they were sent, and say who sent them."""

        def program(station: Station) -> None:
            most = station.nic.max_message
            sizes = sorted({1, 2, 63, 64, 65, most // 2, most - 1, most})
            for index, size in enumerate(sizes):
                station.post_buffers(DEPTH)
                station.meet()
                if station.context.rank == 0:
                    arrived = ("arrived", index)
                    station.send_until(
                        1, payload(size, index), partial(station.shared.__contains__, arrived)
                    )
                else:
                    _receive_one(station, size, index)
                    station.shared["arrived", index] = True
                station.meet()
                _renew(station)

        datagrams().play(program)

    def test_one_completion_for_each_post(self, datagrams: MakeWorld, seed: int) -> None:
        """Each send that is posted completes once, with its context; no more arrive than left."""

        def program(station: Station) -> list[int]:
            station.post_buffers()
            station.meet()
            if station.context.rank == 0:
                for number in range(DEPTH):
                    station.send(1, payload(SHORT, number), ("mine", number), slot=number % DEPTH)
                station.wait(lambda: len(station.of_kind(Work.SEND)) >= DEPTH, "sends to complete")
            station.pass_time(PAUSE)
            station.meet()
            sends = Counter(one.context for one in station.of_kind(Work.SEND))
            if station.context.rank == 0:
                assert sends == Counter(("mine", number) for number in range(DEPTH))
            arrived = station.of_kind(Work.RECEIVE)
            slots = Counter(one.context for one in arrived)
            assert not slots or max(slots.values()) == 1, "a buffer was completed twice"
            return [_number_of(station, one.context, one.size) for one in arrived]

        _, got = datagrams().play(program, seed=seed)[0]
        assert len(got) == len(set(got)), f"some arrived twice over a good wire: {sorted(got)}"

    def test_inline(self, datagrams: MakeWorld) -> None:
        """The memory of an inline send is the caller's again at once."""

        def program(station: Station) -> None:
            station.post_buffers()
            station.meet()
            size = min(SHORT, station.pair.inline_max)
            if station.context.rank == 0:
                for number in range(DEPTH):
                    own = bytearray(payload(size, "inline"))
                    to = station.everybody[1]
                    station.pair.post_send(memoryview(own), to, number, inline=True)
                    own[:] = bytes(size)
                    station.wait(partial(station.has_sent, number), "an inline send")
            station.pass_time(PAUSE)
            for one in station.of_kind(Work.RECEIVE):
                found = bytes(station.slot(_slot(one.context))[: one.size])
                assert_same_bytes(
                    found, payload(size, "inline"), "bytes that were stored after the post"
                )

        datagrams().play(program)

    def test_doorbell(self, datagrams: MakeWorld) -> None:
        """What is posted with `more` completes when it is rung for."""

        def program(station: Station) -> None:
            if station.context.rank:
                station.post_buffers()
            station.meet()
            if station.context.rank == 0:
                data, to = station.slot(0)[:SHORT], station.everybody[1]
                for number in range(DEPTH // 2):
                    station.pair.post_send(data, to, number, more=True)
                station.pair.ring()
                station.wait(
                    lambda: len(station.of_kind(Work.SEND)) == DEPTH // 2, "what was rung for"
                )
            station.meet()

        datagrams().play(program)

    def test_short_buffers(self, datagrams: MakeWorld) -> None:
        """A message that is too long for its buffer is TRUNCATED, and nothing behind changes."""

        def program(station: Station) -> None:
            if station.context.rank:
                for number in range(DEPTH, 2 * DEPTH):
                    station.slot(number)[:] = bytes([GUARD]) * station.nic.max_message
                station.post_buffers(size=SHORT // 2)
            station.meet()
            if station.context.rank == 0:
                station.send_until(1, payload(SHORT), lambda: "done" in station.shared)
                return
            station.wait(lambda: bool(station.of_kind(Work.RECEIVE)), "a message")
            station.shared["done"] = True
            first = station.of_kind(Work.RECEIVE)[0]
            assert first.status is Status.TRUNCATED, f"it is {first.status}"
            slot = station.slot(_slot(first.context))
            behind = bytes(slot[SHORT // 2 :])
            assert behind == bytes([GUARD]) * len(behind), "memory behind the buffer was changed"

        datagrams().play(program)

    def test_nothing_is_kept(self, datagrams: MakeWorld) -> None:
        """A message that finds no buffer is lost: a buffer that comes later does not get it."""

        def program(station: Station) -> None:
            if station.context.rank == 0:
                for number in range(DEPTH // 2):
                    station.send(1, payload(SHORT, "early"), number)
                station.pass_time(PAUSE)
                station.meet()
                station.meet()
                station.send_until(1, payload(SHORT, "late"), lambda: "done" in station.shared)
                return
            station.pass_time(PAUSE)
            station.meet()
            station.pass_time(PAUSE)
            station.post_buffers()
            station.meet()
            station.wait(lambda: bool(station.of_kind(Work.RECEIVE)), "a message")
            station.shared["done"] = True
            one = station.of_kind(Work.RECEIVE)[0]
            found = bytes(station.slot(_slot(one.context))[: one.size])
            assert_same_bytes(
                found, payload(SHORT, "late"), "it was sent before there was a buffer"
            )

        datagrams().play(program)

    def test_refusals(self, datagrams: MakeWorld) -> None:
        """Full queues, long messages and a closed device are errors, and no completions."""

        def program(station: Station) -> None:
            station.post_buffers()
            with pytest.raises(NicError):
                station.pair.post_receive(station.slot(DEPTH), 0)
            to, most = station.everybody[0], station.nic.max_message
            with pytest.raises(NicError):
                station.pair.post_send(station.memory[: most + 1], to, "long")
            too_long = memoryview(bytes(station.pair.inline_max + 1))
            with pytest.raises(NicError):
                station.pair.post_send(too_long, to, "inline", inline=True)
            for number in range(DEPTH):
                station.pair.post_send(station.slot(0)[:1], to, number, more=True)
            with pytest.raises(NicError):
                station.pair.post_send(station.slot(0)[:1], to, "full", more=True)
            station.pair.ring()
            station.wait(lambda: len(station.of_kind(Work.SEND)) == DEPTH, "the sends")
            assert {one.context for one in station.of_kind(Work.SEND)} == set(range(DEPTH))

        datagrams().play(program, 1)

    def test_closing_flushes(self, datagrams: MakeWorld) -> None:
        """What was posted to a queue pair that is closed completes as FLUSHED, once."""

        def program(station: Station) -> None:
            station.post_buffers(DEPTH // 2)
            station.pair.close()
            station.poll()
            found = Counter((one.status, one.context) for one in station.of_kind(Work.RECEIVE))
            slots = range(DEPTH, DEPTH + DEPTH // 2)
            assert found == Counter((Status.FLUSHED, number) for number in slots)
            with pytest.raises(NicError):
                station.pair.post_receive(station.slot(DEPTH), 0)

        datagrams().play(program, 1)

    def test_bad_wire(self, datagrams: MakeWorld, seed: int) -> None:
        """Packets are lost, doubled and late: what arrives was sent, and every send completes."""

        def plan(station: Station) -> list[Drop | Duplicate | Reorder]:
            about = station.context.engine, station.counter
            rates = (
                Drop(*about, rate=0.2),
                Duplicate(*about, rate=0.2),
                Reorder(*about, rate=0.2, delay=LATE),
            )
            return list(rates)

        def program(station: Station) -> None:
            station.post_buffers()
            station.meet()
            if station.context.rank == 0:
                for number in range(DEPTH // 2):
                    station.send(1, payload(SHORT, number), number, slot=number)
                station.wait(lambda: len(station.of_kind(Work.SEND)) == DEPTH // 2, "the sends")
            station.pass_time(PAUSE)
            for one in station.of_kind(Work.RECEIVE):
                _number_of(station, one.context, one.size)
            station.meet()

        datagrams(plan).play(program, seed=seed)

    def test_a_sleeping_rank_is_woken(self, datagrams: MakeWorld) -> None:
        """A rank that sleeps is woken by a message: nothing else happens in its world."""

        def program(station: Station) -> None:
            station.post_buffers()
            station.meet()
            if station.context.rank == 0:
                station.pass_time(PAUSE)
                station.send_until(1, payload(SHORT, 0), lambda: "woken" in station.shared)
            else:
                station.engine.wait_until(lambda: bool(station.of_kind(Work.RECEIVE)))
                station.shared["woken"] = True

        datagrams().play(program)

    def test_link_down(self, datagrams: MakeWorld) -> None:
        """The wire refuses: an event, sends that complete as LINK_DOWN, and the way back."""
        cuts: dict[int, Cut] = {}

        def plan(station: Station) -> list[Cut]:
            rank = station.context.rank
            cuts[rank] = Cut(station.context.engine, station.counter)
            return [cuts[rank]]

        def program(station: Station) -> None:
            if station.context.rank:
                station.post_buffers()
            station.meet()
            if station.context.rank == 0:
                _lose_link(station, cuts[0])
            station.meet()

        world = datagrams(plan)
        world.play(program)
        world.counter.require("cut")


def _lose_link(station: Station, cut: Cut) -> None:
    nic = station.nic
    assert (nic.link, nic.events()) == (LinkState.UP, []), "nothing has happened yet"
    cut.cut()
    station.send(1, payload(SHORT), "refused")
    station.wait(lambda: bool(station.of_kind(Work.SEND)), "a send over a link that is down")
    refused = station.of_kind(Work.SEND)[0]
    assert refused.status is Status.LINK_DOWN, f"a refused send is {refused.status}"
    assert _link(nic) is LinkState.DOWN, "the wire has refused a packet"
    kinds = [event.kind for event in nic.events()]
    assert kinds == [EventKind.LINK_DOWN], f"events: {kinds}"
    cut.restore()
    station.send(1, payload(SHORT), "taken")
    station.wait(lambda: len(station.of_kind(Work.SEND)) == 2, "a send over the link again")
    assert station.of_kind(Work.SEND)[1].status is Status.OK
    assert _link(nic) is LinkState.UP, "the wire takes packets again"
    assert [event.kind for event in nic.events()] == [EventKind.LINK_UP]


def _link(nic: Nic) -> LinkState:
    return nic.link


def _slot(context: object) -> int:
    assert isinstance(context, int), f"a receive came with the context {context!r}"
    return context


def _number_of(station: Station, context: object, size: int) -> int:
    """Which of the messages it is."""
    found = bytes(station.slot(_slot(context))[:size])
    known = {payload(SHORT, number): number for number in range(DEPTH)}
    assert found in known, f"{size} bytes arrived that nobody sent"
    return known[found]


def _receive_one(station: Station, size: int, index: int) -> None:
    """Receive a message that is sent again and again."""
    station.wait(lambda: bool(station.of_kind(Work.RECEIVE)), f"a message of {size} bytes")
    for one in station.of_kind(Work.RECEIVE):
        if one.status is Status.FLUSHED:
            continue
        assert one.status is Status.OK, f"{size} bytes: {one.status}"
        assert one.size == size, f"{size} bytes were sent, {one.size} came"
        found = bytes(station.slot(_slot(one.context))[:size])
        assert_same_bytes(found, payload(size, index), f"a message of {size} bytes was altered")
        if one.source is not None:
            assert one.source == station.everybody[0], "it says another sender"


def _renew(station: Station) -> None:
    """Another queue pair, so that nothing of the last size is on its way."""
    station.pair.close()
    station.poll()
    station.done.clear()
    domain, size = station.nic.domain(), station.nic.max_message
    station.pair = domain.queue_pair(station.queue, DEPTH, DEPTH, size)
    station.meet()
