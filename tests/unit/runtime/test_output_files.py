"""Files for what ranks write."""

from __future__ import annotations

from pathlib import Path

import pytest
from ompy.engine.reactor import Reactor
from ompy.runtime.launching.launcher import OutputFiles
from ompy.runtime.launching.output_files import OutputCopies
from ompy.runtime.launching.printer import Printer


def names(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("std*"))]


def test_ranks_have_zeros_before_them_as_far_as_the_largest_is_longer(tmp_path: Path) -> None:
    made = OutputCopies(OutputFiles(str(tmp_path)), 11)
    assert {path.name for path in (tmp_path / "1").iterdir()} == {f"rank.{n:02}" for n in range(11)}
    made.keep(3, 1, b"a")
    made.keep(3, 1, b"b")
    made.keep(10, 2, b"c")
    assert (tmp_path / "1/rank.03/stdout").read_text() == "ab"
    assert (tmp_path / "1/rank.10/stderr").read_text() == "c"


def test_worlds_that_come_later_are_jobs_of_their_own(tmp_path: Path) -> None:
    made = OutputCopies(OutputFiles(str(tmp_path), numbered=False), 1)
    made.add_world(2)
    made.keep(2, 1, b"of the second")
    assert names(tmp_path) == [
        *(f"2/rank.{n}/{name}" for n in range(2) for name in ("stderr", "stdout")),
        "rank.0/stderr",
        "rank.0/stdout",
    ]
    assert (tmp_path / "2/rank.1/stdout").read_text() == "of the second"


def test_what_is_lost_goes_to_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    written: list[int] = []
    loop = Reactor()
    files = OutputCopies(OutputFiles(str(tmp_path), copied=False), 1)
    printer = Printer(
        loop,
        tag=False,
        timestamp=False,
        on_written=lambda _node, count: written.append(count),
        on_change=lambda *_: None,
        files=files,
    )
    printer.show(0, 0, 1, b"kept\n")
    assert (written, capfd.readouterr().out) == ([5], "")
    (tmp_path / "1/rank.0/stdout").unlink()
    printer.show(0, 0, 1, b"lost\n")
    printer.show(0, 0, 1, b"more\n")
    out, err = capfd.readouterr()
    assert out == "lost\nmore\n"
    assert err.count("what ranks write from now on is not kept there") == 1
    assert (tmp_path / "1/rank.0/stderr").exists()
    loop.close()
