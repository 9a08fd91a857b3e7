"""A dissector for Wireshark, made of what components declare of their headers.

`dissector.lua` is the part that is always the same: it walks through a packet by the tables that
are put into it here. Source: Wireshark's Lua API reference,
11.6 (Proto, ProtoField) and 11.8 (Tvb).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Final

from ompy.data.header_layout import HeaderField, HeaderLayout
from ompy.frameworks.btl_base import common_wire
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.wire_formats import (
    Blob,
    Connections,
    Fragments,
    Packets,
    Repeat,
    Show,
    Sized,
    Step,
    Steps,
    Switch,
    Tagged,
    Through,
    Unit,
    WireFormat,
    Within,
)
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.plugins.discovery import scan_entry_points
from ompy.mca.plugins.loading import LoadFailure, load_target

TEMPLATE: Final = "dissector.lua"
# fields whose value says what a packet is: their names are shown in the list of packets
_LABELS: Final = ("type", "kind", "opcode", "what", "verdict", "stage")
_HEXADECIMAL: Final = ("address", "key", "rkey", "put_address", "identity", "subnet")
_WHOLE: Final = 0xFFFF_FFFF  # arbitrary: `Switch.mask` of all


def dissector() -> tuple[str, list[str]]:
    """The dissector, of all components that are installed.

    Returns:
        Its text, and a sentence for each component whose declarations cannot be used.
    """
    formats, problems = _declared()
    text = files("ompy.cli.tracing").joinpath(TEMPLATE).read_text(encoding="utf-8")
    return text.replace("@FORMATS@", lua_text(_Tables(formats).made()), 1), problems


def _declared() -> tuple[list[WireFormat], list[str]]:
    """What components declare, and what is wrong with it."""
    frameworks = frozenset(each.name for each in CATALOG if each.api is not None)
    formats: list[WireFormat] = list(common_wire.WIRE)
    problems: list[str] = []
    for record in scan_entry_points(frameworks):
        try:
            formats += _formats_of(record)
        except (LoadFailure, TypeError) as problem:
            problems.append(f"{record.framework} {record.name} is left out: {problem}")
    return formats, problems


def _formats_of(record: ComponentRecord) -> list[WireFormat]:
    where = getattr(load_target(record.target), "wire_formats", "")
    found = load_target(where) if where else ()
    if not isinstance(found, Iterable):
        raise TypeError(f"{where} is no sequence of wire formats")
    formats = list(found)
    for each in formats:
        if not isinstance(each, Packets | Connections | Fragments):
            raise TypeError(f"{where} has {each!r}, which is no wire format")
    return formats


class _Tables:
    """The tables that the Lua part goes by."""

    def __init__(self, formats: Iterable[WireFormat]) -> None:
        self._layouts: dict[str, dict[str, Any]] = {}
        self._blobs: dict[str, None] = {}
        self._formats = list(formats)

    def made(self) -> dict[str, Any]:
        """All of them."""
        packets = [each for each in self._formats if isinstance(each, Packets)]
        connections = [each for each in self._formats if isinstance(each, Connections)]
        found = {
            "tags": self._tags(),
            "packets": {e.name: self._steps(e.steps) for e in packets if e.name[-1] != "*"},
            "prefixes": {e.name[:-1]: self._steps(e.steps) for e in packets if e.name[-1] == "*"},
            "signs": {
                each.name: {"at": each.sign[0], "values": dict.fromkeys(each.sign[1], True)}
                for each in packets
                if each.sign
            },
            "connections": {
                each.name: {
                    "asked": self._side(*each.asked),
                    "answered": self._side(*each.answered),
                }
                for each in connections
            },
            "handshake": {
                "asked": [self._handshake(each) for each in (common_wire.HELLO, common_wire.PROOF)],
                "answered": [
                    self._handshake(each) for each in (common_wire.CHALLENGE, common_wire.VERDICT)
                ],
            },
            "record": {
                "head": self._shown(common_wire.RECORD_HEAD),
                "tag": self._shown(common_wire.RECORD_TAG),
            },
            "seal_at": _field(common_wire.HELLO.layout, "handshake.hello.seal").offset,
        }
        return {**found, "layouts": self._layouts, "blobs": list(self._blobs)}

    def _tags(self) -> dict[int, Any]:
        """Steps by tag; who includes another one's comes behind it."""
        fragments = [each for each in self._formats if isinstance(each, Fragments)]
        found: dict[int, Any] = {}
        for each in sorted(fragments, key=lambda each: len(each.includes)):
            found |= {tag: self._steps(steps) for tag, steps in each.cases.items()}
        return found

    def _handshake(self, step: Show) -> dict[str, Any]:
        size = self._shown(step)
        layout = self._layouts[step.layout.name]
        layout["info"] = step.layout.name.partition(".")[2].upper()
        return {"layout": step.layout.name, "size": size}

    def _side(self, unit: Unit, steps: Steps) -> dict[str, Any]:
        layout = unit.layout
        size, kind = _field(layout, unit.size), _field(layout, unit.kind)
        return {
            "steps": self._steps(steps),
            "unit": {
                "header": layout.size,
                "size": {"offset": size.offset, "size": size.size},
                "kind": {"offset": kind.offset, "size": kind.size},
                "bare": dict.fromkeys(unit.bare, True),
                "doubled": dict.fromkeys(unit.doubled, True),
                "heads": dict(unit.heads),
            },
        }

    def _steps(self, steps: Steps) -> list[dict[str, Any]]:
        return [self._step(step) for step in steps]

    def _step(self, step: Step) -> dict[str, Any]:
        made: dict[str, Any] = {"op": type(step).__name__.lower()}
        match step:
            case Show(layout):
                self._shown(step)
                made |= {"layout": layout.name}
            case Switch():
                made |= self._switch(step)
            case Sized(cases, other):
                made |= {"cases": self._cases(cases), "other": self._steps(other)}
            case Within(size, steps, room):
                made |= {"size": size, "steps": self._steps(steps)}
                made |= {"room": room} if room else {}
            case Repeat(steps):
                made |= {"steps": self._steps(steps)}
            case Blob(name, size):
                self._blobs[name] = None
                made |= {"name": name, "size" if isinstance(size, str) else "bytes": size}
            case Tagged(on):
                made |= {"on": on}
            case Through(protocol):
                made |= {"protocol": protocol}
        return made

    def _switch(self, step: Switch) -> dict[str, Any]:
        made: dict[str, Any] = {"on": step.on}
        if step.on.startswith("@"):
            made["peek"] = int(step.on[1:])
        if step.mask != _WHOLE:
            made["mask"] = step.mask
        return {**made, "cases": self._cases(step.cases), "other": self._steps(step.other)}

    def _cases(self, cases: Mapping[int, Steps]) -> dict[int, Any]:
        return {value: self._steps(steps) for value, steps in cases.items()}

    def _shown(self, step: Show) -> int:
        """Have a layout declared, with the names that any step gives to its values; its size."""
        layout = step.layout
        known = self._layouts.setdefault(
            layout.name, {"size": layout.size, "fields": [_plain(each) for each in layout.fields]}
        )
        for field in known["fields"]:
            values = {**field.get("values", {}), **step.values.get(field["name"], {})}
            if values:
                field["values"] = values
                field["label"] = field["name"] in _LABELS
            parts = {part["name"]: part["mask"] for part in field.get("bits", [])}
            parts |= step.bits.get(field["name"], {})
            if parts:
                field["bits"] = [{"name": name, "mask": mask} for name, mask in parts.items()]
        return layout.size


def _plain(field: HeaderField) -> dict[str, Any]:
    hexadecimal = field.name in _HEXADECIMAL and field.type[0] == "u"
    return {**field._asdict(), "hex": hexadecimal}


def _field(layout: HeaderLayout, name: str) -> HeaderField:
    """A field by its whole name."""
    return next(each for each in layout.fields if f"{layout.name}.{each.name}" == name)


def lua_text(value: Any, depth: int = 0) -> str:
    """A value as Lua has it: of numbers, texts, truth, lists and dictionaries."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return '"' + "".join(_letter(letter) for letter in value) + '"'
    if isinstance(value, dict):
        items = [f"[{lua_text(key)}] = {lua_text(each, depth + 1)}" for key, each in value.items()]
    else:
        items = [lua_text(each, depth + 1) for each in value]
    flat = "{" + ", ".join(items) + "}"
    if len(flat) <= 100 - 2 * depth and "\n" not in flat:
        return flat
    margin = "  " * (depth + 1)
    return "{\n" + "".join(f"{margin}{item},\n" for item in items) + "  " * depth + "}"


def _letter(letter: str) -> str:
    return letter if letter.isprintable() and letter not in '"\\' else f"\\{ord(letter) & 0xFF:03}"
