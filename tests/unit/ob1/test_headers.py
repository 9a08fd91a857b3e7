"""ob1's headers: recorded bytes, round trips, and what a parser does with nonsense."""

from __future__ import annotations

import pytest
from ompy.data.errors import MPIError
from ompy_components.pml.ob1 import headers

# recorded once, by hand from the layout in reference openmpi.md 3.4
RECORDED = {
    headers.MATCH_HEADER: (
        (65, 0, 0x1234, -2, 7, 0xFFFFFFFE),
        "4100 3412 feffffff 07000000 feffffff",
    ),
    headers.RNDV_HEADER: (
        (66, 0x21, 1, 3, -17, 1, 5_000_000_000, 9),
        "4221 0100 03000000 efffffff 01000000 00f2052a01000000 0900000000000000",
    ),
    headers.FRAG_HEADER: (
        (70, 0, 131_072, 9, 4),
        "4600 000000000000 0000020000000000 0900000000000000 0400000000000000",
    ),
    headers.ACK_HEADER: (
        (68, 0x10, 9, 4, 32_768, 0),
        "4410 000000000000 0900000000000000 0400000000000000 0080000000000000 0000000000000000",
    ),
    headers.RGET_HEADER: (
        (67, 0x0D, 1, 3, -17, 1, 5_000_000_000, 9, 6, 0x100),
        "430d 0100 03000000 efffffff 01000000 00f2052a01000000 0900000000000000"
        "0600000000000000 0001000000000000",
    ),
    headers.PUT_HEADER: (
        (72, 1, 9, 6, 4, 131_072, 4096, 65_536),
        "4801 000000000000 0900000000000000 0600000000000000 0400000000000000"
        "0000020000000000 0010000000000000 0000010000000000",
    ),
    headers.FIN_HEADER: (
        (73, 0, -16, 6),
        "4900 000000000000 f0ffffffffffffff 0600000000000000",
    ),
    headers.CREDIT_HEADER: (
        (79, 1, 65_536, 2**32 + 5, 8),
        "4f01 0000 00000100 0500000001000000 0800000000000000",
    ),
}
SIZES = {
    "MATCH": 16,
    "RNDV": 32,
    "RGET": 48,
    "FRAG": 32,
    "ACK": 40,
    "PUT": 56,
    "FIN": 24,
    "CREDIT": 24,
}


def test_every_header_is_recorded_and_has_the_size_it_has_elsewhere() -> None:
    assert {headers.NAMES[fields[0]] for fields, _ in RECORDED.values()} == set(SIZES)
    for header, (fields, _) in RECORDED.items():
        assert header.size == SIZES[headers.NAMES[fields[0]]]


@pytest.mark.parametrize("header", list(RECORDED), ids=lambda header: str(header.format))
def test_every_byte_counts(header) -> None:
    """A byte that is corrupted is another field, an error, or padding."""
    fields, text = RECORDED[header]
    data = bytearray.fromhex(text.replace(" ", ""))
    unchanged = 0
    for position in range(header.size):
        data[position] ^= 0x55
        try:
            unchanged += headers.parse(header, fields[0], memoryview(data)) == fields
        except MPIError:
            assert position == 0, "only the type is checked"
        data[position] ^= 0x55
    paddings = {headers.MATCH: 0, headers.RNDV: 0, headers.RGET: 0, headers.CREDIT: 2}
    padding = paddings.get(fields[0], 6)
    assert unchanged == padding


@pytest.mark.parametrize("header", list(RECORDED), ids=lambda header: str(header.format))
def test_recorded_bytes(header) -> None:
    fields, text = RECORDED[header]
    data = bytes.fromhex(text.replace(" ", ""))
    assert len(data) == header.size
    assert header.pack(*fields) == data
    assert headers.parse(header, fields[0], memoryview(data + b"payload")) == fields


def test_what_is_packed_as_words_has_the_same_bytes() -> None:
    for source, tag in ((0, 0), (-2, 7), (3, -17), (2**31 - 1, 2**31 - 1)):
        fields = (0x12, 0x1234, source, tag, 0xFFFFFFFE)
        assert headers.match_words(*fields) == headers.MATCH_HEADER.pack(headers.MATCH, *fields)
        rest = (2**63 + 1, 9, 6, -300)
        recorded = headers.RGET_HEADER.pack(headers.RGET, *fields, *rest)
        assert headers.rget_words(*fields, *rest) == recorded
        recorded = headers.RNDV_HEADER.pack(headers.RNDV, *fields, *rest[:2])
        assert headers.rndv_words(*fields, *rest[:2]) == recorded
    fields = (1, 2**32 - 1, 2**40, 2**50)
    assert headers.credit_words(*fields) == headers.CREDIT_HEADER.pack(headers.CREDIT, *fields)
    fields = (2**63 + 1, 9, 2**40)
    assert headers.frag_words(*fields) == headers.FRAG_HEADER.pack(headers.FRAG, 0, *fields)
    fields = (0x11, 9, 2**63 + 6, 131_072, 2**40)
    assert headers.ack_words(*fields) == headers.ACK_HEADER.pack(headers.ACK, *fields)
    fields = (1, 9, 6, 4, 131_072, 2**63 + 4096, 65_536)
    assert headers.put_words(*fields) == headers.PUT_HEADER.pack(headers.PUT, *fields)
    for size in (0, -16, 2**62):
        assert headers.fin_words(size, 6) == headers.FIN_HEADER.pack(headers.FIN, 0, size, 6)


@pytest.mark.parametrize("header", list(RECORDED), ids=lambda header: str(header.format))
def test_short_and_mislabelled(header) -> None:
    fields, text = RECORDED[header]
    data = bytes.fromhex(text.replace(" ", ""))
    for length in range(header.size):
        with pytest.raises(MPIError, match=f"{length} bytes is shorter"):
            headers.parse(header, fields[0], memoryview(data[:length]))
    with pytest.raises(MPIError, match=f"has a header of type {fields[0]}"):
        headers.parse(header, fields[0] + 1, memoryview(data))


REGISTRATIONS = [(b"tcp a:1 b:2", b"handle"), (b"sm ", b""), (b"", b"x" * 256)]


def test_registrations_behind_a_rget() -> None:
    data = headers.pack_registrations(REGISTRATIONS)
    recorded = "0b0600 74637020613a3120623a32 68616e646c65 030000 736d20 000001" + "78" * 256
    assert data == bytes.fromhex(recorded.replace(" ", ""))
    assert headers.parse_registrations(data) == REGISTRATIONS
    whole = [len(headers.pack_registrations(REGISTRATIONS[:count])) for count in range(4)]
    for length in range(len(data)):
        if length in whole:
            assert (
                headers.parse_registrations(data[:length]) == REGISTRATIONS[: whole.index(length)]
            )
            continue
        with pytest.raises(MPIError, match="in the middle of a registration"):
            headers.parse_registrations(data[:length])
