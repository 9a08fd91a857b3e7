"""Damaged input is refused by its reader's own error: nothing else is raised, and all of it ends.

`tools/sweep mutants` draws as many as it is told to (`tools/nightly.py` a hundred times as many).
What was found is kept below, each as a case of its own.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ompy.mca.errors import UsageError

from tests.support.effort import effort
from tests.support.mutant_subjects import SUBJECTS, give, option_values
from tools.sweep.mutants import sweep


@pytest.mark.parametrize("name", SUBJECTS)
def test_mutants_of_an_input(name: str) -> None:
    count, defects = sweep(effort(25), 0, name)
    assert count >= effort(25)
    assert not defects, defects[0]


def test_values_of_options() -> None:
    """All that click knows of: what is new comes in by itself."""
    count, defects = sweep(effort(50), 0, "options")
    assert count > 40
    assert not defects, defects[0]


HEADER = (
    b'{"format":"ompy-trace","version":1,"rank":0,"node":0,"host":"h","monotonic":1,"wall":2}\n'
)


def event(name: str, **fields: object) -> bytes:
    about = {"context": 0, "source": 0, "sequence": 1, "side": "send", "peer": 1, "tag": 7}
    return json.dumps([5, "pml.ob1", name, {**about, **fields}]).encode() + b"\n"


FOUND: dict[str, tuple[str, bytes]] = {
    "half a surrogate pair, as bytes": (
        "trace",
        HEADER + b'[1,"l","\xed\xa0\x80",{}]\n',
    ),
    "time is no number": ("trace", HEADER + b'["x","l","N",{}]\n'),
    "time beyond 64 bits": ("trace", HEADER + b"[%s,\"l\",\"N\",{}]\n" % (b"9" * 400)),
    "digits Python refuses": ("trace", HEADER + b"[%s,\"l\",\"N\",{}]\n" % (b"9" * 5000)),
    "time is infinite": ("trace", HEADER + b'[Infinity,"l","N",{}]\n'),
    "fields are a list": ("trace", HEADER + b'[1,"l","N",[]]\n'),
    "a name that is a list": ("trace", HEADER + b'[1,"l",[],{}]\n'),
    "half of a surrogate pair": ("trace", HEADER + b'[1,"l","\\ud800",{}]\n'),
    "no UTF-8": ("trace", HEADER + b'[1,"l","\xff",{}]\n'),
    "nested beyond recursion": ("trace", HEADER + b"[" * 100_000 + b"\n"),
    "nested deep": ("trace", HEADER + b'[1,"l","N",{"a":' + b"[" * 900 + b"]" * 900 + b"}]\n"),
    "header is a list": ("trace", b"[]\n"),
    "header of another rank": ("trace", HEADER.replace(b'"rank":0', b'"rank":1')),
    "rank is a text": ("trace", HEADER.replace(b'"rank":0', b'"rank":"0"')),
    "wall clock is null": ("trace", HEADER.replace(b'"wall":2', b'"wall":null')),
    "end is no text": ("trace", HEADER + b'{"end":[],"dropped":"many"}\n'),
    "a message without a peer": ("trace", HEADER + event("MATCH").replace(b'"peer"', b'"pear"')),
    "a protocol without a size": ("trace", HEADER + event("PROTOCOL", protocol="x")),
    "a size that is a text": ("trace", HEADER + event("PROTOCOL", protocol="x", size="1")),
    "an offset that is a list": ("trace", HEADER + event("FRAG", offset=[], payload=1)),
    "a side that is a list": ("trace", HEADER + event("MATCH", side=[])),
    "a put without a size": ("trace", HEADER + event("WRITE", offset=0)),
    "a post without a number": ("trace", HEADER + event("POST", side="receive")),
    "an empty file": ("trace", b""),
    "facts that are a list": ("job.json", b"[]"),
    "facts nested beyond recursion": ("job.json", b"[" * 100_000),
    "a time beyond 64 bits": ("--fault", b"delay:delay=99999999999999999999min"),
    "a time that is infinite": ("--fault", b"delay:delay=" + b"9" * 400 + b"s"),
    "a count beyond 64 bits": ("--fault", b"drop:nth=99999999999999999999"),
    "a name too long for a file": ("--fault", b"a" * 300),
    "digits too long for a file": ("--fault", b"9" * 5000),
    "a key that is no text": ("--fault", b"drop:probabilit\xf9=0.1"),
    "TOML nested beyond recursion": ("fault script", b"a = " + b"[" * 100_000),
    "TOML that is no text": ("fault script", b"\xff"),
    "slots nobody has": ("hostfile", b"a slots=" + b"9" * 31 + b"\n"),
    "slots with more digits than Python takes": ("hostfile", b"a slots=" + b"9" * 5000 + b"\n"),
    "a million slots, often": ("hostfile", b"a slots=1000000\n" * 1000),
    "a NUL in a hostfile": ("hostfile", b"a\0b slots=1\n"),
    "a line of 70 MB": ("hostfile", b"a" * 70_000_000),
    "ranks per host nobody has": ("--map-by", b"ppr:1000000000000:node"),
    "more digits than Python takes": ("--map-by", b"ppr:" + b"9" * 5000 + b":node"),
    "ten thousand million nodes": ("node list", b"n[0-9999999999]"),
    "lists that multiply": ("node list", b"n[0-9999][0-9999][0-9999]"),
    "many long lists": ("node list", b",".join([b"n[0-60000]"] * 1000)),
    "tasks without end": ("tasks per node", b"2(x99999999999999)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(tmp_path: Path, name: str) -> None:
    subject, data = FOUND[name]
    SUBJECTS[subject].read(data, tmp_path)


@pytest.mark.parametrize("option", ["-n", "--rails"])
def test_a_world_that_no_memory_holds_is_refused(tmp_path: Path, option: str) -> None:
    (found,) = (one for words, one in option_values() if words == "ompy sim" and option in one.opts)
    assert give("ompy sim", found, ["9" * 30], tmp_path) == UsageError.exit_code
