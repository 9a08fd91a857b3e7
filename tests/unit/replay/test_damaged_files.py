"""Files of JSON that keep a job, a search, a world or a schedule: each damage is said in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ompy.cli.simulating.kept_world import KeptWorldError, about_world, read_kept_world
from ompy.frameworks.job import App, Job, Placement
from ompy.replay.entries import RecordingError
from ompy.replay.job_file import AGAIN, RecordedJob, read_job, write_job
from ompy.runtime.exploration.schedule_file import read_schedule, text_of
from ompy.runtime.exploration.search import Search
from ompy.runtime.exploration.search_file import (
    SavedSearch,
    plain_of,
    read_search,
    text_of_search,
)

STEP = 7  # arbitrary: not every byte, but every kind of place


def damages(text: str) -> list[str]:
    """The text cut, and with a character changed that matters, at many places."""
    cut = [text[:place] for place in range(0, len(text) - 1, STEP)]
    changed = [
        text[:place] + ("8" if text[place] != "8" else "9") + text[place + 1 :]
        for place in range(0, len(text), STEP)
        if not text[place].isspace()
    ]
    return [*cut, *changed, "[" * 100_000, "null", "[]", '{"words": 3}', "\x00"]


def refused(path: Path, read: Callable[[str], object], kind: type[Exception]) -> set[str]:
    """What is said of each damage; each has to be refused by this kind of error."""
    whole, said = path.read_text(), set()
    for text in damages(whole):
        path.write_text(text)
        with pytest.raises(kind) as caught:
            read(str(path))
        said.add(str(caught.value))
    path.write_text(whole)
    read(str(path))
    return said


def test_job_json(tmp_path: Path) -> None:
    job = Job("0011223344556677", (App(("program.py",), 2),), ("here",),
              (Placement(0, 0, 0, 0), Placement(1, 0, 0, 1)), {"values": {}}, -1)  # fmt: skip
    write_job(RecordedJob(str(tmp_path), ("-n", "2", "program.py"), "/tmp", True, job))
    said = refused(tmp_path / "job.json", lambda _: read_job(str(tmp_path)), RecordingError)
    for text in said:
        assert text.startswith(str(tmp_path / "job.json"))
        assert text.endswith(AGAIN) or "this ompy reads" in text


def test_a_search(tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    modes = {True: plain_of(Search(None), bounded=False)}
    path.write_text(text_of_search(SavedSearch({"--polls": 1}, modes)))
    said = refused(path, read_search, ValueError)
    assert any("its checksum is wrong" in text for text in said)
    assert any("truncated" in text for text in said)


def test_a_world(tmp_path: Path) -> None:
    options = {"program": "program.py", "arguments": (), "mca": (), "ranks": 3}
    path = tmp_path / "world.json"
    path.write_text(json.dumps({"about": about_world(options, ["--seed", "7"])}, indent=1))
    kept = read_kept_world(str(path))
    assert kept.words == ("--ranks", "3", "--seed", "7", "program.py")
    for text in refused(path, read_kept_world, KeptWorldError):
        assert text.startswith(f"{path}: ")


def test_a_schedule_that_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    choices = [((0, 1), ("from", 2, 1), "program.py:4", "it takes a message")]
    whole = text_of({}, 3, 1, choices, buffers=True)
    for place in range(0, len(whole) - 2, STEP):
        path.write_text(whole[:place])
        with pytest.raises(ValueError, match="damaged or truncated"):
            read_schedule(str(path))
