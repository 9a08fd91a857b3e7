"""Reference: what goes over wires, from the declarations of headers in the code."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from ompy.data.header_layout import HeaderLayout

from tools.site.markdown import block, cell, code, table, toctree

ROOT: Final = Path(__file__).resolve().parents[2]
ROOTS: Final = ("core", "components")
# beside every headers.py
MODULES: Final = (
    "ompy.net.seals.handshake",
    "ompy.net.seals.datagram_seal",
    "ompy.net.seals.records",
    "ompy.runtime.connections.control",
    "ompy.runtime.probes.probe_datagrams",
)


class Declared(NamedTuple):
    """A constant of a module, with the comment above or beside it."""

    name: str
    value: object
    comment: str


def pages() -> dict[str, str]:
    """A page for each module that declares headers, and a list of them."""
    made = {}
    for module in modules():
        made[f"headers/{module}.md"] = page(module)
    head = (
        "# Wire headers\n\nEach page is made from the module that packs and unpacks the headers. "
        "All are little-endian, unless a format begins with `!`.\n\n"
    )
    names = sorted(name.removeprefix("headers/").removesuffix(".md") for name in made)
    made["headers/index.md"] = head + toctree(f"{name} <{name}>" for name in names)
    return made


def modules() -> list[str]:
    """The modules that declare what goes over a wire."""
    found = list(MODULES)
    for root in ROOTS:
        for path in sorted((ROOT / root).rglob("headers.py")):
            found.append(".".join(path.relative_to(ROOT / root).with_suffix("").parts))
    return found


def page(name: str) -> str:
    """The headers of a module and its numbers."""
    module = importlib.import_module(name)
    assert module.__file__
    path = Path(module.__file__)
    text = path.read_text()
    found = [
        Declared(constant, getattr(module, constant), comment)
        for constant, comment in declarations(text)
        if hasattr(module, constant) and not constant.startswith("__")
    ]
    parts = [f"# {name}\n", f"Declared in `{path.relative_to(ROOT)}`.\n"]
    parts.append(block((ast.get_docstring(ast.parse(text)) or "").strip()))
    layouts = [one for one in found if isinstance(one.value, HeaderLayout)]
    declared = {id(one.value.struct) for one in layouts if isinstance(one.value, HeaderLayout)}
    structs = [
        [code(one.name), code(one.value.struct.format), str(one.value.size), _fields(one.value)]
        for one in layouts
        if isinstance(one.value, HeaderLayout)
    ]
    structs += [
        [code(one.name), code(one.value.format), str(one.value.size), cell(one.comment)]
        for one in found
        if isinstance(one.value, Struct) and id(one.value) not in declared
    ]
    if structs:
        parts += ["## Layouts\n", table(["name", "format", "bytes", "fields"], structs)]
    numbers = [
        [code(one.name), code(one.value), cell(one.comment)]
        for one in found
        if isinstance(one.value, int) and not isinstance(one.value, bool)
    ]
    if numbers:
        parts += ["## Numbers\n", table(["name", "value", "remark"], numbers)]
    return "\n".join(parts)


def _fields(layout: HeaderLayout) -> str:
    """Name, type and offset of each."""
    return cell(", ".join(f"{each.name} {each.type} @{each.offset}" for each in layout.fields))


def declarations(text: str) -> list[tuple[str, str]]:
    """The constants that a module sets, in their order, with their comments."""
    lines = text.splitlines()
    found = []
    for node in ast.parse(text).body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign):
            target = node.targets[0]
        if isinstance(target, ast.Name) and target.id.isupper():
            found.append((target.id, _comment(lines, node.lineno - 1, (node.end_lineno or 1) - 1)))
    return found


def _comment(lines: list[str], first: int, last: int) -> str:
    """What stands behind a declaration, or else in the lines above it."""
    beside = re.search(r"#\s*(.*)$", "\n".join(lines[first : last + 1]))
    if beside:
        return beside[1].removeprefix("noqa").strip()
    above: list[str] = []
    while first and lines[first - 1].startswith("#"):
        first -= 1
        above.insert(0, lines[first].lstrip("# "))
    return " ".join(above)
