"""The tools that say whether ob1 has changed, and what bfo makes otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import bfo_overrides  # noqa: E402 - a tool, not a package
import ob1_changed  # noqa: E402

sys.path.pop(0)


def test_a_change_of_ob1_is_seen(tmp_path: Path) -> None:
    for name, text in (("a.py", "1"), ("b.pxd", "2"), ("c.md", "3"), ("d.py", "4")):
        (tmp_path / name).write_text(text)
    before = ob1_changed.state(tmp_path)
    assert set(before) == {"a.py", "b.pxd", "d.py"}
    assert not ob1_changed.differences(before, ob1_changed.state(tmp_path))
    (tmp_path / "a.py").write_text("5")
    (tmp_path / "d.py").unlink()
    (tmp_path / "e.py").write_text("6")
    lines = ob1_changed.differences(before, ob1_changed.state(tmp_path))
    assert lines == ["changed: a.py", "gone: d.py", "new: e.py"]


def test_what_bfo_makes_otherwise() -> None:
    found = {one.name: one for one in bfo_overrides.overrides()}
    assert not found["Sending.unknown"].adds
    assert found["Receiving.rndv_arrived"].adds
    assert found["Gets.completed"].derived == "BfoGets"
    assert "self._ob1.unknown" in found["Sending.unknown"].before


def test_a_method_is_shown_as_a_difference() -> None:
    words = [sys.executable, str(ROOT / "tools" / "bfo_overrides.py"), "Sending.unknown"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "--- ob1 Sending.unknown" in shown
    assert "+++ bfo BfoSending.unknown" in shown
    assert "-        self._ob1.unknown(" in shown
