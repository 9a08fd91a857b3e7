"""Packets that no device of ours sends, under the right key: refused, or not looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ompy.frameworks.nic.verbs import Opcode, State
from ompy.net.seals.seal import PacketSeal
from ompy_components.nic.hca import headers
from ompy_components.nic.hca.device import NAME, RUNS
from ompy_components.nic.hca.headers import SPACE, Answer, Operands, Remote
from ompy_components.nic.hca.responder import ANSWER_MAX

from tests.support.hca_pair import End, ends, remote, send, until
from tests.support.networks import World, two_networks

CANARY = b"\xc5" * (1 << 16)


@pytest.fixture
def world() -> Iterator[World]:
    with two_networks("virtual") as made:
        yield made


def forge(
    near: End, far: End, opcode: int, extension: Any = None, payload: bytes = b"", **fields: int
) -> None:
    """Send far's queue pair what its peer might send, but for some fields."""
    ours, theirs = near.pairs[0], far.pairs[0]
    base = {
        "asks": True,
        "round": 0,
        "lid": far.nic.lid,
        "to": theirs.number,
        "source": ours.number,
        "sequence": theirs.responder.expected % SPACE,
        **fields,
    }
    base["sequence"] %= SPACE
    address = far.nic.port.address
    words: tuple[Any, ...] = tuple(base.values())
    near.nic.sender.send_packet(address, words, opcode, extension, [memoryview(payload)])
    near.nic.port.flush()


def settle(world: World, *sides: End) -> None:
    """Let everything that is under way arrive."""
    over = world.engines[0].now() + 1_000_000
    world.engines[0].call_later(1_000_000, lambda: None)
    until(world, sides, lambda: world.engines[0].now() >= over)


def refused_as(far: End) -> str:
    refusal = far.pairs[0].responder._refusal
    return "" if refusal is None else refusal[1].name


def place(far: End, length: int, **more: int) -> Remote:
    fields = {"address": far.region.address, "rkey": far.region.rkey, "length": length}
    return Remote(**{**fields, "segment": 256, **more})


REFUSED = {
    "the middle of no send": (headers.SEND_MIDDLE, lambda far: None, b"x"),
    "the end of no send": (headers.SEND_LAST, lambda far: None, b"x"),
    "the middle of no write": (headers.WRITE_MIDDLE, lambda far: None, b"x"),
    "more than was said": (headers.WRITE_ONLY, lambda far: place(far, 3), b"four"),
    "a length beyond all": (headers.WRITE_FIRST, lambda far: place(far, 2**31 + 1), b"x"),
    "packets of no bytes": (headers.READ_REQUEST, lambda far: place(far, 8, segment=0), b""),
    "too many packets": (
        headers.READ_REQUEST,
        lambda far: place(far, ANSWER_MAX + 1, segment=1),
        b"",
    ),
    "a read beyond all": (headers.READ_REQUEST, lambda far: place(far, 2**32 - 1), b""),
}


@pytest.mark.parametrize("what", REFUSED)
def test_requests_that_make_no_sense(world: World, what: str) -> None:
    near, far = ends(world)
    far.memory[:] = CANARY
    opcode, extension, payload = REFUSED[what]
    forge(near, far, opcode, extension(far), payload)
    settle(world, near, far)
    assert refused_as(far) == "INVALID"
    assert far.pairs[0].state is State.ERR
    assert far.memory == CANARY


FIRSTS = {
    "send": (headers.SEND_FIRST, lambda far: None),
    "write": (headers.WRITE_FIRST, lambda far: place(far, 8)),
}
WITHIN = {
    "a send": (headers.SEND_ONLY, lambda far: None, b"x"),
    "a write": (headers.WRITE_ONLY, lambda far: place(far, 1), b"x"),
    "a read": (headers.READ_REQUEST, lambda far: place(far, 1), b""),
    "an atomic": (
        headers.FETCH_ADD,
        lambda far: Operands(far.region.address, far.region.rkey, 1, 0),
        b"",
    ),
}


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("first", FIRSTS)
def test_a_request_within_a_message(world: World, first: str, within: str) -> None:
    near, far = ends(world)
    far.memory[:] = CANARY
    far.pairs[0].post_receive(far.span(1000, 100), "receive")
    far.pairs[0].post_receive(far.span(2000, 100), "other")
    opcode, extension = FIRSTS[first]
    forge(near, far, opcode, extension(far), CANARY[:4])
    settle(world, near, far)
    opcode, extension, payload = WITHIN[within]
    forge(near, far, opcode, extension(far), payload)
    settle(world, near, far)
    assert refused_as(far) == "INVALID"
    assert [one.status.name for one in far.done] == ["WR_FLUSH_ERR"] * 2
    assert far.memory == CANARY


def test_the_other_kind_of_message_goes_on(world: World) -> None:
    near, far = ends(world)
    far.pairs[0].post_receive(far.span(0, 100), "receive")
    forge(near, far, headers.SEND_FIRST, None, b"begin")
    settle(world, near, far)
    forge(near, far, headers.WRITE_LAST, None, b"end")
    settle(world, near, far)
    assert refused_as(far) == "INVALID"


def test_a_write_that_ends_early(world: World) -> None:
    near, far = ends(world)
    forge(near, far, headers.WRITE_ONLY, place(far, 5), b"four")
    settle(world, near, far)
    assert refused_as(far) == "INVALID"


@pytest.mark.parametrize("field", ["lid", "to", "source"])
def test_packets_for_others_and_from_others(world: World, field: str) -> None:
    near, far = ends(world)
    far.memory[:] = CANARY
    value = near.pairs[0].number + 7 if field == "source" else 77
    forge(near, far, headers.WRITE_ONLY, place(far, 4), b"four", **{field: value})
    settle(world, near, far)
    assert far.memory == CANARY
    assert far.pairs[0].state is State.RTS


def test_answers_from_others(world: World) -> None:
    """Here it is near that answers what far has sent."""
    near, far = ends(world)
    far.pairs[0].post_send(send(far, 0, 8))
    first = far.pairs[0].here().first_packet
    number = near.pairs[0].number + 7
    ack = Answer(headers.ACK, 1)
    forge(near, far, headers.ACKNOWLEDGE, ack, sequence=first, source=number)
    settle(world, far)
    assert far.done == []


@pytest.mark.parametrize("ahead", [1, 2, 1000])
@pytest.mark.parametrize("kind", [headers.ACK, headers.NAK | 2, headers.RNR_NAK])
def test_answers_to_what_was_never_sent(world: World, ahead: int, kind: int) -> None:
    near, far = ends(world)
    first = far.pairs[0].here().first_packet
    forge(near, far, headers.ACKNOWLEDGE, Answer(kind, 1), sequence=first + ahead)
    near.pairs[0].post_receive(near.span(0, 8), "receive")
    far.pairs[0].post_send(send(far, 0, 8))
    forge(near, far, headers.ACKNOWLEDGE, Answer(kind, 1), sequence=first + ahead)
    settle(world, far)  # near has not looked: nothing can be done yet
    assert far.done == []
    until(world, (near, far), lambda: bool(far.done and near.done))
    assert far.done[0].status.name == "SUCCESS"
    assert far.pairs[0].requester.una == first + 1


def test_a_nak_of_a_kind_nobody_knows(world: World) -> None:
    near, far = ends(world)
    far.pairs[0].post_send(send(far, 0, 8))
    first = far.pairs[0].here().first_packet
    for syndrome in (headers.NAK | 4, headers.NAK | 31, 0x40, 0xE0):
        forge(near, far, headers.ACKNOWLEDGE, Answer(syndrome, 1), sequence=first)
    near.pairs[0].post_receive(near.span(0, 8), "receive")
    until(world, (near, far), lambda: bool(far.done and near.done))
    assert far.done[0].status.name == "SUCCESS"


def test_an_answer_of_the_wrong_length(world: World) -> None:
    """It is taken for none, and the read is asked for again."""
    near, far = ends(world)
    far.pairs[0].post_send(remote(Opcode.RDMA_READ, far, 0, 8, near.region))
    near.memory[:8] = b"rightful"
    first = far.pairs[0].here().first_packet
    for payload in (b"", b"short", b"much too long"):
        forge(
            near,
            far,
            headers.READ_RESPONSE_ONLY,
            Answer(headers.ACK, 1),
            payload,
            sequence=first,
        )
    until(world, (near, far), lambda: bool(far.done))
    assert far.memory[:20] == b"rightful" + bytes(12)


def test_a_read_that_was_partly_taken_is_not_answered(world: World) -> None:
    near, far = ends(world)
    first = near.pairs[0].here().first_packet
    forge(near, far, headers.READ_REQUEST, place(far, 512))
    settle(world, near, far)
    assert far.pairs[0].responder.expected == first + 2
    sent: list[Any] = []
    put = far.nic.port.put

    def noted(*packet: Any) -> None:
        sent.append(packet)
        put(*packet)

    far.nic.port.put = noted  # type: ignore[method-assign]
    forge(near, far, headers.READ_REQUEST, place(far, 512), sequence=first + 1)
    settle(world, near, far)
    assert sent == []
    forge(near, far, headers.READ_REQUEST, place(far, 256), sequence=first + 1)
    settle(world, near, far)
    assert len(sent) == 1


def test_a_packet_under_another_key(world: World) -> None:
    near, far = ends(world)
    far.memory[:] = CANARY
    near.nic._seal._seal = PacketSeal(b"x" * 32, NAME)
    forge(near, far, headers.WRITE_ONLY, place(far, 4), b"four")
    settle(world, far)
    assert far.nic._seal.refused == 1
    assert far.memory == CANARY


@pytest.mark.parametrize("later", [0, 1, SPACE])
def test_a_recorded_write_is_not_taken_again(world: World, later: int) -> None:
    """At once it would be a repetition; 2**24 packets later its number is right once more."""
    near, far = ends(world)
    recorded: list[tuple[Any, Any]] = []
    put = near.nic.port.put

    def spy(packet: Any, to: Any, leaves: int) -> None:
        recorded.append((bytes(packet), to))
        put(packet, to, leaves)

    near.nic.port.put = spy  # type: ignore[method-assign]
    near.memory[:4] = b"old "
    near.pairs[0].post_send(remote(Opcode.RDMA_WRITE, near, 0, 4, far.region))
    until(world, (near, far), lambda: bool(near.done))
    assert bytes(far.memory[:4]) == b"old "
    far.memory[:4] = b"new "
    (packet, to), *_ = recorded
    if later:  # all that was sent meanwhile, to where the packet's number is the expected one again
        far.pairs[0].responder.expected += later - 1
        near.nic._seal._numbers[far.nic._own] += later - 1
    far.nic.trace.start()
    put(memoryview(packet), to)
    near.nic.port.flush()
    settle(world, far)
    assert bytes(far.memory[:4]) == b"new "
    assert (far.nic._seal.repeated, far.nic._seal.refused) == (1, 0)
    far.nic.close()
    dropped = [event for event in far.nic.trace if event.name == "DROPPED"]
    assert [dict(event.fields)["repeated"] for event in dropped] == [1]


def test_time_is_not_up_while_there_are_unread_packets(world: World) -> None:
    """The answer lies behind others, which the device does not read all at once."""
    near, far = ends(world, clock=False)  # a completion can be read at once
    for _ in range(3 * RUNS):
        forge(far, near, headers.NOP)
    settle(world, far)
    near.nic.trace.start()
    near.pairs[0].post_send(remote(Opcode.RDMA_WRITE, near, 0, 8, far.region))
    settle(world, far)
    settle(world, far)  # the time of a try is over by far, and the ACK is here
    rounds = 0
    while not near.done:
        assert near.queue.ready(), "a rank would sleep"
        near.poll()
        rounds += 1
    assert rounds > 2
    assert [event.name for event in near.nic.trace if event.name == "TIMEOUT"] == []


def test_a_reads_answer_to_an_atomic(world: World) -> None:
    near, far = ends(world)
    far.pairs[0].post_send(remote(Opcode.FETCH_AND_ADD, far, 0, 8, near.region, swap=1))
    first = far.pairs[0].here().first_packet
    near.memory[:8] = far.memory[:8] = b"original"
    answer = Answer(headers.ACK, 1)
    forge(near, far, headers.READ_RESPONSE_ONLY, answer, b"rightful", sequence=first)
    settle(world, far)
    assert far.done == []
    assert far.memory[:8] == b"original"
    until(world, (near, far), lambda: bool(far.done))
    assert far.memory[:8] == b"original"
    assert near.memory[:8] != b"original"
