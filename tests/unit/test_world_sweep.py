"""Sweeps over numbered worlds: they go on where they stopped, and end where a world fails."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tools.sweep import worlds as world_sweep
from tools.sweep.transports import bfo as bfo_sweep
from tools.sweep.transports import lossy as lossy_sweep
from tools.sweep.worlds import WorldSweep

ROOT = Path(__file__).resolve().parents[2]

BAD = 8  # of `squares`


class Worlds:
    """Ten worlds of two classes, one of which may fail."""

    def __init__(self, bad: int = -1, quiet: bool = False) -> None:
        self.ran: list[int] = []
        self.shown: list[int] = []
        self.bad = bad
        self.quiet = quiet

    def run(self, number: int) -> tuple[str, Counter[str]]:
        self.ran.append(number)
        assert number != self.bad, "this world is bad"
        return ("even", "odd")[number % 2], Counter(struck=0 if self.quiet else number, bytes=10)

    def silent(self, sums: world_sweep.Sums) -> list[str]:
        return [f"{name}: nothing struck" for name, counts in sums.items() if not counts["struck"]]

    @property
    def sweep(self) -> WorldSweep:
        return WorldSweep(
            name="toy",
            worlds=10,
            shard=4,
            run=self.run,
            show=self.shown.append,
            silent=self.silent,
            heading="# Toys",
            columns={"worlds": ("worlds",), "twice": ("struck", "struck")},
        )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(world_sweep, "ROOT", tmp_path)
    monkeypatch.setattr(world_sweep, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(world_sweep, "commit_name", lambda: "abc")
    (tmp_path / "docs").mkdir()
    return tmp_path


def test_all_worlds_and_their_figures(folder: Path) -> None:
    worlds = Worlds()
    world_sweep.main(worlds.sweep, "Toys.", [])
    assert worlds.ran == list(range(10))
    text = (folder / "docs" / "toy-sweep.md").read_text()
    assert text.startswith("# Toys\n\n`python tools/sweep toy`, 20")
    assert "commit abc" in text
    assert "10 worlds in" in text
    assert "NOT COMPLETE" not in text
    assert text.endswith("| even | 5 | 40 |\n| odd | 5 | 50 |\n| **all** | 10 | 90 |\n")


def test_the_last_line_says_that_all_passed_and_what_they_saw(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world_sweep.main(Worlds().sweep, "Toys.", ["--worlds", "4"])
    assert capsys.readouterr().out.endswith("all 4 worlds passed: 12 twice\n")


def squares(number: int) -> tuple[str, Counter[str]]:
    """A world that another process can run."""
    assert number != BAD, "this world is bad"
    return "square", Counter({"struck": number, "bytes": 1, f"fault {number % 2}": number})


def test_two_at_a_time_come_to_the_same(folder: Path) -> None:
    sweep = replace(
        Worlds().sweep, run=squares, kinds={"times": "fault ", "worlds": "worlds with "}
    )
    texts = []
    for jobs in ("1", "2"):
        world_sweep.main(sweep, "Toys.", ["--worlds", "7", "--record", "--jobs", jobs])
        texts.append((folder / "docs" / "toy-sweep.md").read_text().splitlines()[4:])
        (folder / "kept" / "toy-abc.json").unlink()
    assert texts[0] == texts[1]
    assert texts[0][-4:] == [
        "| | times | worlds |",
        "|---|---:|---:|",
        "| 0 | 12 | 0 |",
        "| 1 | 9 | 0 |",
    ]
    with pytest.raises(SystemExit, match=r"world 8 FAILED"):
        world_sweep.main(sweep, "Toys.", ["--jobs", "2"])


def test_going_on_past_a_world_that_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worlds = Worlds(bad=6)
    with pytest.raises(SystemExit, match=r"FAILED: worlds 6; one again: .*sweep toy --world N"):
        world_sweep.main(worlds.sweep, "Toys.", ["--keep-going"])
    assert worlds.ran == list(range(10))
    assert not list((folder / "docs").iterdir())
    assert "10 worlds in 0 s of processor time; world " in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"FAILED: worlds 6"):
        world_sweep.main(Worlds().sweep, "Toys.", ["--keep-going"])


def test_a_world_that_fails_ends_it_and_the_next_run_goes_on(folder: Path) -> None:
    worlds = Worlds(bad=6)
    with pytest.raises(SystemExit, match=r"world 6 FAILED; again: .*tools/sweep toy --world 6"):
        world_sweep.main(worlds.sweep, "Toys.", [])
    assert not list((folder / "docs").iterdir())
    again = Worlds()
    world_sweep.main(again.sweep, "Toys.", [])
    assert again.ran == list(range(4, 10)), "the shard that was not whole is run anew"
    assert "| **all** | 10 | 90 |" in (folder / "docs" / "toy-sweep.md").read_text()


def test_what_is_not_committed_is_not_gone_on_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world_sweep, "commit_name", lambda: "abc+")
    for _ in range(2):
        worlds = Worlds()
        world_sweep.main(worlds.sweep, "Toys.", [])
        assert worlds.ran == list(range(10))


def test_shares_of_many_days_come_round_to_all_worlds(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was committed in between; a shard in which one failed is tried again."""
    ran = []
    for day, bad in enumerate((-1, 7, -1, -1)):
        monkeypatch.setattr(world_sweep, "commit_name", lambda day=day: str(day))
        worlds = Worlds(bad=bad)
        if bad >= 0:
            with pytest.raises(SystemExit, match="world 7 FAILED"):
                world_sweep.main(worlds.sweep, "Toys.", ["--next", "6"])
        else:
            world_sweep.main(worlds.sweep, "Toys.", ["--next", "6"])
        ran.append(worlds.ran)
    assert ran == [[*range(6)], [6, 7], [*range(6, 10), 0, 1], [*range(2, 8)]]
    assert not list((folder / "docs").iterdir()), "a share is not the sweep"


def test_a_class_in_which_nothing_struck_is_a_failure(folder: Path) -> None:
    with pytest.raises(SystemExit, match="even: nothing struck\nodd: nothing struck"):
        world_sweep.main(Worlds(quiet=True).sweep, "Toys.", [])
    assert not list((folder / "docs").iterdir())


def test_fewer_worlds_are_written_only_when_asked_for_and_say_so(folder: Path) -> None:
    world_sweep.main(Worlds().sweep, "Toys.", ["--worlds", "4"])
    assert not list((folder / "docs").iterdir())
    world_sweep.main(Worlds().sweep, "Toys.", ["--worlds", "4", "--record"])
    assert "NOT COMPLETE: all are 10" in (folder / "docs" / "toy-sweep.md").read_text()


def test_parts_of_several_days_come_to_the_figures_of_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    figures = folder / "docs" / "toy-sweep.md"
    for commit, part in (("a", "1/2"), ("b", "2/2"), ("c", "1/2")):
        monkeypatch.setattr(world_sweep, "commit_name", lambda commit=commit: commit)
        worlds = Worlds()
        world_sweep.main(worlds.sweep, "Toys.", ["--part", part])
        ran.append(worlds.ran)
        assert ("NOT COMPLETE" in figures.read_text()) == (commit == "a")
    assert ran == [[*range(5)], [*range(5, 10)], [*range(5)]]
    text = figures.read_text()
    assert re.search(r"commits c of \S+ \(5 worlds\), b of \S+ \(5 worlds\), ", text)
    assert text.endswith("| even | 5 | 40 |\n| odd | 5 | 50 |\n| **all** | 10 | 90 |\n")


def test_a_part_in_which_a_world_fails_is_not_kept_and_gone_on_with(folder: Path) -> None:
    with pytest.raises(SystemExit, match="world 9 FAILED"):
        world_sweep.main(Worlds(bad=9).sweep, "Toys.", ["--part", "2/2"])
    assert not list((folder / "docs").iterdir())
    again = Worlds()
    world_sweep.main(again.sweep, "Toys.", ["--part", "2/2"])
    assert again.ran == [9], "the shard that was not whole"


@pytest.mark.parametrize("part", ["0/2", "3/2", "x", "1/11", "1"])
def test_what_is_no_part_is_refused(
    folder: Path, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        world_sweep.main(Worlds().sweep, "Toys.", ["--part", part])
    assert ended.value.code == 2
    assert "--part: " in capsys.readouterr().err


def test_one_world_is_only_shown(folder: Path) -> None:
    worlds = Worlds()
    world_sweep.main(worlds.sweep, "Toys.", ["--world", "3"])
    assert (worlds.shown, worlds.ran) == ([3], [])


@pytest.mark.parametrize("sweep", [bfo_sweep.BFO, lossy_sweep.LOSSY], ids=["bfo", "lossy"])
def test_the_sweeps_there_are(sweep: WorldSweep, capsys: pytest.CaptureFixture[str]) -> None:
    name, counted = sweep.run(0)
    assert name
    assert counted["messages"] > 0
    assert list((ROOT / "tools" / "sweep").rglob(f"{sweep.name}.py"))
    assert sweep.silent({name: Counter(worlds=10**6)}), "a class in which nothing struck"
    sweep.show(0)
    assert "messages" in capsys.readouterr().out
