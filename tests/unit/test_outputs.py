"""Output files in folders that are everybody's: what a stranger has planted is left alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ompy import outputs
from ompy.outputs import PlantedError
from ompy.trace.trace_files import RankHeader, TraceWriter, prepare_directory, rank_file, write_job

STRANGER = 12345  # a user id nobody has here
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can plant another user's files")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder as /tmp is."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def plant(path: Path, kind: str, victim: Path) -> None:
    """Put something of a stranger's there; `victim` is a file or folder of ours."""
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("theirs")
    else:
        os.mkfifo(path)
    os.lchown(path, STRANGER, STRANGER)


@root
@pytest.mark.parametrize("kind", ["link", "file", "fifo"])
def test_a_planted_file_is_not_written(shared: Path, tmp_path: Path, kind: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    plant(shared / "out", kind, victim)
    with pytest.raises(PlantedError, match=f"user {STRANGER}"):
        outputs.write_text(str(shared / "out"), "new")
    assert victim.read_text() == "precious"
    if kind == "file":
        assert (shared / "out").read_text() == "theirs"


@root
@pytest.mark.parametrize("kind", ["link", "folder"])
@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_a_planted_folder_is_not_written_in(
    shared: Path, tmp_path: Path, kind: str, below: str
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    plant(shared / "trace", kind, victim)
    where = str(shared / "trace" / below)
    for act in (lambda: prepare_directory(where), lambda: TraceWriter(where, RankHeader(0), 10)):
        with pytest.raises(PlantedError):
            act()
    assert not list(victim.iterdir())


@root
def test_what_is_ours_or_roots_is_written(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (shared / "link").symlink_to(tmp_path / "real")
    prepare_directory(str(shared / "link"))
    write_job(str(shared / "link"), {})
    assert (tmp_path / "real" / "job.json").exists()
    outputs.write_text(str(shared / "file"), "one, longer")
    outputs.write_text(str(shared / "file"), "two")
    assert (shared / "file").read_text() == "two"
    outputs.write_text("/dev/stdout", "")
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", STRANGER, STRANGER)
    outputs.write_text(str(tmp_path / "theirs" / "file"), "in no shared folder: the user's choice")


WRITES: dict[str, Callable[[str], object]] = {
    "rank-0.jsonl": lambda folder: TraceWriter(folder, RankHeader(0), 10).close("finalize"),
    "job.json": lambda folder: write_job(folder, {}),
    ".job.json": lambda folder: write_job(folder, {}),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_links_in_a_trace_are_replaced_not_followed(
    tmp_path: Path, name: str, link: Callable[[Path, Path], None]
) -> None:
    """Whoever made them."""
    (victim := tmp_path / "victim").write_text("precious")
    (folder := tmp_path / "trace").mkdir()
    link(victim, folder / name)
    WRITES[name](str(folder))
    assert victim.read_text() == "precious"
    assert Path(rank_file(str(folder), 0) if "rank" in name else folder / "job.json").is_file()


def test_paths_that_lead_nowhere_are_for_open_to_tell(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for path in (tmp_path / "a", tmp_path / "none" / "x", tmp_path):
        outputs.refuse_planted(str(path))
        with pytest.raises(OSError) as caught:
            outputs.write_text(str(path), "")
        assert not isinstance(caught.value, PlantedError)
