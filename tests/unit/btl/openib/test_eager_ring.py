"""Eager RDMA channels: both ends of a ring, against a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy_components.btl.openib.headers import FOOTER_SIZE, BadFragment, RingOffer, pack_footer
from ompy_components.btl.openib.memory.eager_ring import ReceiveRing, SendRing

SLOT = 40
BASE = 1 << 33


class Channel:
    """A ring, its writer, and a device that carries writes or loses them."""

    def __init__(self, slots: int) -> None:
        self.memory = memoryview(bytearray(SLOT * slots))
        self.sender = SendRing(RingOffer(slots, 1, BASE, SLOT))
        self.receiver = ReceiveRing(self.memory, slots)

    def write(self, data: bytes, *, arrives: bool = True) -> int | None:
        found = self.sender.take_slot(len(data))
        if found is None:
            return None
        number, address = found
        if arrives:
            start = address - BASE
            bytes_ = data + pack_footer(len(data))
            self.memory[start : start + len(bytes_)] = bytes_
        return number

    def read(self) -> bytes | None:
        found = self.receiver.take_fragment()
        if found is None:
            return None
        data = bytes(found)
        self.receiver.done()
        return data


@given(
    slots=st.integers(2, 6),
    steps=st.lists(st.sampled_from(["write", "lose", "read", "credits", "tell"]), max_size=80),
)
def test_what_arrives_is_read_in_order(slots: int, steps: list[str]) -> None:
    """Lost writes are passed over once the sender has told their numbers, and nothing else is."""
    channel = Channel(slots)
    expected: list[bytes | None] = []
    lost: list[int] = []
    got = []
    for count, step in enumerate(steps):
        if step in ("write", "lose"):
            data = b"head" + count.to_bytes(4)
            number = channel.write(data, arrives=step == "write")
            if number is not None:
                assert number == len(expected)
                expected.append(data if step == "write" else None)
                if step == "lose":
                    lost.append(number)
        elif step == "read":
            got.append(channel.read())
        elif step == "credits":
            channel.sender.gained(channel.receiver.give(3))
        elif lost:
            channel.receiver.failed(lost.pop())
    for number in lost:
        channel.receiver.failed(number)
    while (data := channel.read()) is not None:
        got.append(data)
    assert [one for one in got if one is not None] == [one for one in expected if one is not None]
    assert not channel.receiver.full


def test_a_number_of_an_earlier_lap_is_no_news() -> None:
    """Slot 0 of the next lap must not be passed over because of the write before."""
    channel = Channel(3)
    for count in range(3):
        channel.write(b"lap0" + bytes([count]))
        assert channel.read() is not None
        channel.sender.gained(channel.receiver.give(9))
    channel.receiver.failed(0)  # its acknowledgement was lost, not the write
    assert channel.receiver.next == 3
    channel.write(b"lap1")
    assert channel.read() == b"lap1"


def test_what_arrived_although_it_failed_is_read() -> None:
    channel = Channel(4)
    channel.receiver.failed(0)  # overtakes the write
    assert channel.receiver.next == 1
    channel = Channel(4)
    channel.write(b"here")
    channel.receiver.failed(0)
    assert channel.read() == b"here"


def test_the_rest_of_a_broken_connection() -> None:
    """Empty slots are passed over: nobody was told that those writes were good."""
    channel = Channel(6)
    for count, arrives in enumerate([True, False, False, True, True]):
        channel.write(b"data" + bytes([count]), arrives=arrives)
    assert channel.read() == b"data\0"
    assert channel.read() is None, "it waits for the second"
    assert [bytes(data) for data in channel.receiver.rest()] == [b"data\3", b"data\4"]


def test_what_does_not_fit_takes_no_slot() -> None:
    channel = Channel(2)
    assert channel.sender.take_slot(SLOT - FOOTER_SIZE + 1) is None
    assert channel.sender.take_slot(SLOT - FOOTER_SIZE) is not None
    assert channel.sender.take_slot(4) is None, "one slot stays empty"
    with pytest.raises(AssertionError):
        channel.sender.gained(2)


@pytest.mark.parametrize("size", [0, 3, SLOT - FOOTER_SIZE + 1])
def test_a_footer_that_cannot_be(size: int) -> None:
    channel = Channel(2)
    channel.memory[SLOT - FOOTER_SIZE : SLOT] = pack_footer(size)
    with pytest.raises(BadFragment):
        channel.receiver.take_fragment()
