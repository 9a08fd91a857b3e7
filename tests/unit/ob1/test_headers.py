"""ob1's headers: recorded bytes, round trips, and what a parser does with nonsense."""

from __future__ import annotations

import pytest
from ompy.data.errors import MPIError
from ompy_components.pml.ob1 import headers

# recorded once, by hand from the layout in reference openmpi.md 3.4
RECORDED = {
    headers.MATCH_HEADER: (
        (65, 0, 0x1234, -2, 7, 0xFFFE),
        "4100 3412 feffffff 07000000 feff 0000",
    ),
    headers.RNDV_HEADER: (
        (66, 0x21, 1, 3, -17, 1, 5_000_000_000, 9),
        "4221 0100 03000000 efffffff 0100 0000 00f2052a01000000 0900000000000000",
    ),
    headers.FRAG_HEADER: (
        (70, 0, 131_072, 9, 4),
        "4600 000000000000 0000020000000000 0900000000000000 0400000000000000",
    ),
    headers.ACK_HEADER: (
        (68, 0x10, 9, 4, 32_768, 0),
        "4410 000000000000 0900000000000000 0400000000000000 0080000000000000 0000000000000000",
    ),
}


@pytest.mark.parametrize("header", list(RECORDED), ids=lambda header: str(header.format))
def test_recorded_bytes(header) -> None:
    fields, text = RECORDED[header]
    data = bytes.fromhex(text.replace(" ", ""))
    assert len(data) == header.size
    assert header.pack(*fields) == data
    assert headers.parse(header, fields[0], memoryview(data + b"payload")) == fields


@pytest.mark.parametrize("header", list(RECORDED), ids=lambda header: str(header.format))
def test_short_and_mislabelled(header) -> None:
    fields, text = RECORDED[header]
    data = bytes.fromhex(text.replace(" ", ""))
    for length in range(header.size):
        with pytest.raises(MPIError, match=f"{length} bytes is shorter"):
            headers.parse(header, fields[0], memoryview(data[:length]))
    with pytest.raises(MPIError, match=f"has a header of type {fields[0]}"):
        headers.parse(header, fields[0] + 1, memoryview(data))
