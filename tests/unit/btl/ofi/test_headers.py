"""What goes over the wire, and who is believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy_components.btl.ofi import modex
from ompy_components.btl.ofi.headers import HEADER_SIZE, BadMessage, Header, Kind, Seal

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


@given(st.integers(0, HEADER_SIZE + 6), st.integers(1, 255))
def test_a_mac_is_about_every_byte(at: int, flip: int) -> None:
    message = _message(Seal(KEY, 1, whole=True))
    message[at] ^= flip
    with pytest.raises(BadMessage):
        Seal(KEY, 0, whole=True).open(message, 2)


@given(st.integers(16, 19), st.integers(1, 255))
def test_a_token_is_about_the_sender(at: int, flip: int) -> None:
    message = _message(Seal(KEY, 1, whole=False))
    message[at] ^= flip
    with pytest.raises(BadMessage):
        Seal(KEY, 0, whole=False).open(message, 3)


def test_the_bytes() -> None:
    message = _message(Seal(KEY, 1, whole=False))
    assert message[16:HEADER_SIZE].hex() == "010000000700000003000000" + "0200" + "01" + "40"


@given(
    st.sampled_from(["shm", "tcp;ofi_rxm", "emulated"]),
    st.integers(0, 2),
    st.integers(1, 99),
    st.binary(max_size=64),
    st.sampled_from(["", "10.0.0.1", "rail0/3"]),
)
def test_modex(provider: str, mode: int, window: int, name: bytes, address: str) -> None:
    record = modex.PeerRecord(provider, mode, window, name, address)
    assert modex.unpack(modex.pack(record)) == record
    assert modex.unpack(b"") is None
    assert modex.unpack(b"2 " + modex.pack(record)[2:]) is None
