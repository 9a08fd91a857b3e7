"""What is removed of a process that was killed, and what is not."""

from __future__ import annotations

from pathlib import Path

from ompy.runtime.diagnosis.leftovers import remove_left


def test_only_plain_files_with_its_number(tmp_path: Path) -> None:
    for name in ("17:0:0", "17:0:1", "170:0:0", "1:17:0", "17", "x17:0"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "17:folder").mkdir()
    (tmp_path / "17:link").symlink_to(tmp_path / "170:0:0")
    assert remove_left(17, str(tmp_path)) == 2
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"170:0:0", "1:17:0", "17", "x17:0", "17:folder", "17:link"}
    assert remove_left(17, str(tmp_path)) == 0


def test_no_folder(tmp_path: Path) -> None:
    assert remove_left(17, str(tmp_path / "missing")) == 0
