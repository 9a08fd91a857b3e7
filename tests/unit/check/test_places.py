"""Places of calls: whether a line behind one can touch memory before the next call."""

from __future__ import annotations

import linecache
import sys
from types import FrameType
from typing import Any

import pytest
from ompy.check.again.places import Places

HEAD = "def program(mark, rows, n):\n  for i in range(2):\n    mark(0)\n"


def quiet(between: str) -> bool:
    """Whether the first of two calls of a loop is quiet, with lines between them."""
    text = HEAD + between + "    mark(1)\n  return 0\n"
    name = f"<{hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    places, found, frames = Places(), [], list[FrameType]()

    def mark(number: int) -> None:
        frame = sys._getframe(1)
        places.add_place(frame)
        if not number and frames:
            found.append(places.is_quiet(frame))
        frames.append(frame)

    mark.__module__ = "ompy.test"  # it stands for a call of MPI's
    space: dict[str, Any] = {"helper": lambda: None}
    exec(compile(text, name, "exec"), space)
    space["program"](mark, bytearray(8), 3)
    return found[-1]


@pytest.mark.parametrize(
    "between",
    [
        "",
        "    k = n + 1\n",
        "    k = [n]\n    for j in range(n):\n      k.append(j)\n",
        "    if n > 7:\n      mark(2)\n",
        "    try:\n      k = n\n    finally:\n      k = 0\n",
    ],
)
def test_nothing_is_touched(between: str) -> None:
    assert quiet(between)


@pytest.mark.parametrize(
    "between",
    [
        "    rows[0] = 1\n",
        "    k = rows[0]\n",
        "    if n > 7:\n      k = rows[0]\n",
        "    if n > 7:\n      return rows\n",
        "    while n > 7:\n      n += rows[0]\n",
        "    helper()\n",
        "    print(rows)\n",
        "    k = rows.hex()\n",
        "    try:\n      k = n\n    except ValueError:\n      rows[0] = 1\n",
        "    (lambda: None)()\n",
    ],
)
def test_something_may_be_touched(between: str) -> None:
    assert not quiet(between)
