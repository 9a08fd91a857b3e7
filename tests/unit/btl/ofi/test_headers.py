"""What goes over the wire, and who is believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.net.seals.replay import WINDOW
from ompy_components.btl.ofi import modex
from ompy_components.btl.ofi.component import COMPONENT
from ompy_components.btl.ofi.headers import (
    HEADER_SIZE,
    BadMessage,
    Header,
    Kind,
    Replayed,
    Seal,
    receiver_of,
)

KEY = bytes(range(32))
HEADER = Header(1, 7, 3, 2, Kind.FRAGMENT, 0x40)


def _message(seal: Seal, payload: bytes = b"payload", to: int = 0) -> memoryview:
    made = memoryview(bytearray(HEADER_SIZE) + bytearray(payload))
    seal.close(made, to, HEADER)
    return made


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_peer_says_is_believed(whole: bool) -> None:
    message = _message(Seal(KEY, 1, whole=whole))
    receiver = Seal(KEY, 0, whole=whole)
    found = receiver.open(message, 2)
    for field in Header.__slots__:
        assert getattr(found, field) == getattr(HEADER, field), field
    assert not receiver.refused


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_stranger_says_is_not(whole: bool) -> None:
    receiver = Seal(KEY, 0, whole=whole)
    strangers = [
        _message(Seal(bytes(32), 1, whole=whole)),  # another job
        _message(Seal(KEY, 1, whole=whole), to=2),  # for somebody else
        _message(Seal(KEY, 1, whole=not whole)),
        _message(Seal(KEY, 1, whole=whole))[: HEADER_SIZE - 1],
        memoryview(bytearray(100)),
        memoryview(bytearray()),
    ]
    for message in strangers:
        with pytest.raises(BadMessage):
            receiver.open(message, 3)
    assert receiver.refused == len(strangers)
    with pytest.raises(BadMessage):
        receiver.open(_message(Seal(KEY, 1, whole=whole)), 1)  # the job has no rank 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_message_is_for_one_module(whole: bool) -> None:
    """What was recorded on one rail is nothing on another one."""
    message = _message(Seal(KEY, 1, whole=whole), to=receiver_of(0, 1))
    with pytest.raises(BadMessage):
        Seal(KEY, 0, whole=whole).open(message, 2)
    assert Seal(KEY, 0, whole=whole, module=1).open(message, 2).number == 7


@given(st.integers(0, HEADER_SIZE + 6), st.integers(1, 255))
def test_a_mac_is_about_every_byte(at: int, flip: int) -> None:
    message = _message(Seal(KEY, 1, whole=True))
    message[at] ^= flip
    with pytest.raises(BadMessage):
        Seal(KEY, 0, whole=True).open(message, 2)


@given(st.integers(24, 27), st.integers(1, 255))
def test_a_token_is_about_the_sender(at: int, flip: int) -> None:
    message = _message(Seal(KEY, 1, whole=False))
    message[at] ^= flip
    with pytest.raises(BadMessage):
        Seal(KEY, 0, whole=False).open(message, 3)


def test_the_bytes() -> None:
    message = _message(Seal(KEY, 1, whole=False))
    behind = "010000000700000003000000" + "0200" + "01" + "40"
    assert message[16:HEADER_SIZE].hex() == "00" * 8 + behind
    message = _message(Seal(KEY, 1, whole=True, first=0x0102030405060707))
    assert message[16:HEADER_SIZE].hex() == "0807060504030201" + behind
    assert (HEADER_SIZE, len(message)) == (40, 40 + len(b"payload"))


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("first", [0, (1 << 32) - 2, (1 << 48) - 2])
def test_a_recorded_message_is_never_taken_again(kind: Kind, first: int) -> None:
    sender, receiver = Seal(KEY, 1, whole=True, first=first), Seal(KEY, 0, whole=True)
    header = Header(1, 7, 3, 2, kind, 0x40)
    sent: list[bytes] = []
    for _ in range(WINDOW + 5):
        message = memoryview(bytearray(HEADER_SIZE))
        sender.close(message, 0, header)
        sent.append(bytes(message))
        receiver.open(message, 2)
    for again in (sent[0], sent[4], sent[5], sent[-1]):
        with pytest.raises(Replayed):
            receiver.open(memoryview(bytearray(again)), 2)
    assert (receiver.replayed, receiver.refused) == (4, 0)


def test_no_number_of_acknowledgements_leaves_a_fragment_behind() -> None:
    """An ACK may overtake a fragment any number of times; it is taken all the same, once."""
    sender, receiver = Seal(KEY, 1, whole=True), Seal(KEY, 0, whole=True)
    slow = _message(sender)
    for _ in range(2 * WINDOW):
        ack = memoryview(bytearray(HEADER_SIZE))
        sender.close(ack, 0, Header(1, 0, 3, 2, Kind.ACK, 0))
        receiver.open(ack, 2)
    assert receiver.open(slow, 2).number == 7
    with pytest.raises(Replayed, match="here before"):
        receiver.open(slow, 2)


def test_what_the_device_refuses_uses_up_no_number() -> None:
    sender, receiver = Seal(KEY, 1, whole=True), Seal(KEY, 0, whole=True)
    slow = _message(sender)
    for _ in range(2 * WINDOW):
        _message(sender)
        sender.withdraw(0, Kind.FRAGMENT)
    assert receiver.open(_message(sender), 2).number == 7
    assert receiver.open(slow, 2).number == 7


@given(
    st.sampled_from(["shm", "tcp;ofi_rxm", "emulated"]),
    st.integers(0, 2),
    st.integers(1, 99),
    st.binary(max_size=64),
    st.sampled_from(["", "10.0.0.1", "rail0/3"]),
)
def test_modex(provider: str, mode: int, window: int, name: bytes, address: str) -> None:
    records = [
        modex.PeerRecord(provider, mode, window, name, address, prefix, port)
        for prefix, port in ((0, 0), (24, 65535))
    ]
    assert modex.unpack(modex.pack(records)) == records
    assert not modex.unpack(b"")
    assert not modex.unpack(b"1 " + modex.pack(records[:1])[2:])


def test_a_window_of_fragments_fits_the_seals() -> None:
    """The first of as many fragments as a peer may send ahead can arrive last."""
    (rd_num,) = [one for one in COMPONENT.parameters if one.name == "rd_num"]
    assert rd_num.maximum is not None
    sender, receiver = Seal(KEY, 1, whole=True), Seal(KEY, 0, whole=True)
    sent = [_message(sender) for _ in range(rd_num.maximum)]
    for message in reversed(sent):
        receiver.open(message, 2)
    assert not receiver.replayed
