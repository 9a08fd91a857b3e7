"""Every header that components declare, with values in all its fields, as tshark reads it."""

from __future__ import annotations

import pytest
from ompy.cli.tracing.dissector import dissector, lua_text
from ompy.data.header_layout import HeaderLayout
from ompy.trace.exporting.pcapng import pcapng

from tests.support.tshark_reading import Fields, dissected, need_tshark, number, octets
from tests.support.wire_samples import Shown, all_samples


def read_value(name: str, text: str, wanted: int | bytes) -> int | bytes:
    """What tshark has written, as what is wanted is given."""
    if name == "ompy.protocol":
        return text.encode()
    return octets(text) if isinstance(wanted, bytes) else number(text)


Read = tuple[list[Fields], list[Shown]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """What tshark has read of each packet, and what is to be read."""
    need_tshark()
    samples = all_samples()
    capture, packets = pcapng(samples.trace())
    assert packets == len(samples.shown)
    return dissected(capture, tmp_path_factory.mktemp("tshark")), samples.shown


def test_every_header_is_read_field_by_field(read: Read) -> None:
    found, shown = read
    assert len(found) > 400
    layouts: set[str] = set()
    for place, (fields, wanted) in enumerate(zip(found, shown, strict=True), 1):
        plain = [(name, text) for name, text in fields if not is_part(name)]
        assert [name for name, _ in plain] == [name for name, _ in wanted], f"packet {place}"
        for (name, text), (_, value) in zip(plain, wanted, strict=True):
            assert read_value(name, text, value) == value, f"packet {place}: {name}"
        layouts |= {name.rpartition(".")[0].removeprefix("ompy.") for name, _ in wanted}
    text, _ = dissector()
    declared = {line.split('"')[1] for line in layout_lines(text)}
    assert declared - layouts == set()


def is_part(name: str) -> bool:
    """Whether it is of bits of a field: their own test has them."""
    return name.count(".") == 4


def layout_lines(text: str) -> list[str]:
    """The lines where layouts begin in the tables of a dissector."""
    lines = text.splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith('  ["layouts"]'))
    end = next(place for place, line in enumerate(lines) if line.startswith('  ["blobs"]'))
    return [line for line in lines[begin + 1 : end] if line.startswith('    ["')]


def test_parts_of_fields(read: Read) -> None:
    masks = {"ask": 0x01, "ring": 1 << 15, "queue": 0x7800, "given": 0x07FF}
    masks |= {"asks": 0x8000, "taken": 0x7FFF, "restart": 0x80, "message": 0xFFFFFF}
    seen: set[str] = set()
    for fields in read[0]:
        values = dict(fields)
        for name, text in values.items():
            field, _, part = name.rpartition(".")
            if not is_part(name) or part not in masks or name.startswith("ompy.hca.base"):
                continue
            mask, whole = masks[part], number(values[field])
            expected = (whole & mask) // (mask & -mask)
            assert number(text) == expected, name
            seen.add(part)
    assert seen == masks.keys()


def test_text_in_lua() -> None:
    value: dict[object, object] = {"a": [1, True, 'say "no"\\\n'], 7: {}}
    assert lua_text(value) == '{["a"] = {1, true, "say \\"no\\"\\\\\\010"}, [7] = {}}'.replace(
        '\\"', "\\034"
    ).replace("\\\\", "\\092", 1)


def test_layouts() -> None:
    layout = HeaderLayout("a.b", "one u8, pad 3, two i64, three b5")
    assert [(each.name, each.offset, each.size) for each in layout.fields] == [
        ("one", 0, 1), ("two", 4, 8), ("three", 12, 5),
    ]  # fmt: skip
    assert layout.size == 17
    assert layout.struct.pack(1, -2, b"three") == b"\1\0\0\0\xfe" + b"\xff" * 7 + b"three"
    with pytest.raises(ValueError, match="no type u7"):
        HeaderLayout("a.b", "one u7")


def test_shown_values_are_of_samples() -> None:
    shown: list[Shown] = all_samples().shown
    assert any(name == "ompy.encrypted" for fields in shown for name, _ in fields)
