"""What tshark reads in a pcapng file with our dissector: the fields of each packet, in order."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ompy.cli.tracing.dissector import dissector

Fields = list[tuple[str, str]]


@cache
def _dissector() -> str:
    text, problems = dissector()
    assert not problems
    return text


def need_tshark() -> None:
    """Skip the test, visibly, where tshark is not installed."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed (Debian: tshark)")


def dissected(capture: bytes, folder: Path) -> list[Fields]:
    """The fields that the dissector has shown of each packet, in order.

    Values are as tshark writes them. What it calls malformed is among them, by its name.
    """
    script, file = folder / "ompy.lua", folder / "job.pcapng"
    script.write_text(_dissector())
    file.write_bytes(capture)
    command = [
        "tshark",
        "-X",
        f"lua_script:{script}",
        "-r",
        str(file),
        "-T",
        "json",
        "-J",
        "ompy _ws.malformed _ws.lua",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    said = [line for line in done.stderr.splitlines() if not line.startswith("Running as user")]
    assert done.returncode == 0, done.stderr
    assert not said, done.stderr
    packets = json.loads(done.stdout, object_pairs_hook=list)
    return [list(_flat(packet)) for packet in packets]


def _flat(pairs: Any) -> Any:
    """Names and values in the order of the packet, of whatever is in each other."""
    if not isinstance(pairs, list):
        return
    for each in pairs:
        if not isinstance(each, tuple):
            yield from _flat(each)
            continue
        name, value = each
        if isinstance(value, str) and name.startswith("ompy."):
            yield name, value
        elif name.startswith(("_ws.malformed", "_ws.lua.error", "_ws.short")):
            yield name, str(value)
        yield from _flat(value)


def number(value: str) -> int:
    """A number as tshark writes it, decimal or hexadecimal."""
    return int(value, 0)


def octets(value: str) -> bytes:
    """Bytes as tshark writes them."""
    return bytes.fromhex(value.replace(":", ""))
