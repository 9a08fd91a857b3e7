"""What `ompy bench gasnet` makes of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from ompy.cli.bench import bench
from ompy.cli.gasnet_bench import best, changes, figure, plot, print_rows, rows_of
from ompy.cli.gasnet_loops import way_of

RESULT = {
    "rows": [
        ["put", "out", 8, "FMA direct", [2e-6, 4e-6, 3e-6]],
        ["AM short", "", 0, "", [5e-6]],
        ["put flood", "out", 4096, "FMA direct", [1e-6]],
        ["put flood", "out", 4104, "BTE bounce", [1e-6]],
        ["put flood", "out", 8200, "BTE register", [1e-6]],
        ["get flood", "in", 4096, "FMA segment", [1e-6]],
        ["get flood", "in", 4104, "BTE segment", [1e-6]],
        ["memory copy", "in", 4096, "", [1e-7]],
    ]
}
ROWS = rows_of(RESULT)


def test_figures() -> None:
    assert figure(ROWS[0]) == pytest.approx(3)
    assert figure(ROWS[0], best) == pytest.approx(2.2)
    assert figure(ROWS[1], best) == pytest.approx(5)
    assert figure(ROWS[2]) == pytest.approx(4096)


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(ROWS)
    assert lines[1].split() == ["put", "out", "8", "3.00", "2.20", "us", "FMA", "direct"]
    assert lines[2].split() == ["AM", "short", "-", "0", "5.00", "5.00", "us", "-"]
    assert lines[3].split()[:5] == ["put", "flood", "out", "4096", "4,096.00"]


def test_where_transfers_go_another_way() -> None:
    assert changes(ROWS) == [(4104, "BTE bounce, BTE segment"), (8200, "BTE register")]


def test_ways() -> None:
    assert way_of({}, {"fma_put": 3, "direct": 3, "requests": 1}) == "FMA direct"
    before = {"rdma_get": 3, "fma_get": 2, "bounce": 1}
    assert way_of(before, {"rdma_get": 4, "fma_get": 2, "bounce": 2}) == "BTE bounce"
    assert way_of({}, {"requests": 5}) == ""


def test_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    plot({"conduit": "aries", "rows": ROWS}, tmp_path / "flood.svg")
    assert "<svg" in (tmp_path / "flood.svg").read_text()


def test_only_gasnet_has_a_picture() -> None:
    done = CliRunner().invoke(bench, ["latency", "--plot", "a.svg"])
    assert done.exit_code == 2
    assert "only gasnet has a picture" in done.output
