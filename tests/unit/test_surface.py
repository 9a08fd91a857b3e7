"""`tools/bench surface` goes on after the row in which a side has ended, and says why it did."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from tools.bench.peer.peer_sides import Side
from tools.bench.surface import last_words, lines_of

RULER = "-" * 20
COMPLAINT = (
    f"[vm] *** Signal: Aborted ***\n{RULER}\nrank 1 exited on\nsignal 6 (Aborted).\n{RULER}\n"
)
# prints the rows from the number behind the last word's colon on, and ends in those it is told
PROGRAM = f"""
import json, os, sys
ends, first = set(map(int, sys.argv[1].split())), int(sys.argv[-1].partition(":")[2])
for at in range(first, 6):
    if at in ends:
        sys.stdout.flush()
        sys.stderr.write({COMPLAINT!r})
        sys.stderr.flush()
        os.abort()
    print(json.dumps({{"row": f"row {{at}}", "size": 8}}))
"""


class Ending(Side):
    """A side that ends in some rows."""

    name = "ending"

    def __init__(self, ends: str) -> None:
        self._ends = ends

    def command(self, ranks: int, way: str) -> list[str]:
        return [sys.executable, "-c", PROGRAM, self._ends]


@pytest.mark.parametrize(
    ("ends", "rows"),
    [
        ("", [0, 1, 2, 3, 4, 5]),
        ("2", [0, 1, 3, 4, 5]),
        ("1 4", [0, 2, 3, 5]),
        ("0", []),
        ("5", [0, 1, 2, 3, 4]),
    ],
)
def test_it_goes_on_after_a_crash(
    ends: str, rows: Sequence[int], capsys: pytest.CaptureFixture[str]
) -> None:
    found = lines_of(Ending(ends), 2, "sm", ["0.1", "8", "", "started"])
    assert [line["row"] for line in found] == [f"row {at}" for at in rows]
    said = capsys.readouterr().err
    assert said.count("signal 6 (Aborted).") == len(ends.split())
    assert RULER not in said


def test_last_words_are_words() -> None:
    assert last_words(COMPLAINT) == "rank 1 exited on signal 6 (Aborted)."
    assert last_words(RULER) == "no word"
