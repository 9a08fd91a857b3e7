"""What `ompy bench gasnet` makes of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from ompy.cli.measuring.bench import bench
from ompy.cli.measuring.gasnet_bench import (
    best,
    changes,
    figure,
    in_words,
    plot,
    print_rows,
    rows_of,
    title,
)
from ompy.cli.measuring.gasnet_loops import way_of

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
    assert len(lines) == 2 + len(ROWS)
    assert lines[1].split() == ["put", "out", "8", "3.00", "2.20", "us", "FMA", "direct"]
    assert lines[2].split() == ["AM", "short", "-", "0", "5.00", "5.00", "us", "-"]
    assert lines[3].split()[:5] == ["put", "flood", "out", "4096", "4,096.00"]


def test_where_transfers_go_another_way() -> None:
    assert changes(ROWS) == [
        (4096, "put: BTE bounce, get: BTE segment"),
        (4104, "put: BTE register"),
    ]


def test_ways() -> None:
    assert way_of({}, {"fma_put": 3, "direct": 3, "requests": 1}) == "FMA direct"
    before = {"rdma_get": 3, "fma_get": 2, "bounce": 1}
    assert way_of(before, {"rdma_get": 4, "fma_get": 2, "bounce": 2}) == "BTE bounce"
    assert way_of({}, {"requests": 5}) == ""


def test_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    about = {"machine": "a machine", "python": "3", "form": "compiled", "mca": {}}
    report = {"conduit": "aries", "rows": ROWS, **about}
    plot(report, tmp_path / "flood.svg")
    assert "<svg" in (tmp_path / "flood.svg").read_text()
    assert title(report).startswith("aries, bandwidth of a flood over the NIC\na machine, Python 3")
    chosen = {"conduit_aries_messages": "mailboxes"}
    of_copies = title({**report, "rows": ROWS[-1:], "mca": chosen})
    assert of_copies.startswith("aries, bandwidth of a flood by shared memory, messages mailboxes")


def test_what_cannot_be_drawn_is_said_before_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    monkeypatch.setattr("ompy.cli.measuring.bench._measure", lambda *_: pytest.fail("it measured"))
    for name, why in (("flood.xyz", "no kind of picture"), ("none/flood.svg", "no folder")):
        done = CliRunner().invoke(bench, ["gasnet", "--plot", str(tmp_path / name)])
        assert done.exit_code == 2
        assert why in " ".join(done.output.replace("│", " ").split())


def test_sizes_of_the_axis() -> None:
    assert [in_words(size) for size in (8, 1024, 1 << 18, 1 << 20)] == [
        "8",
        "1 KiB",
        "256 KiB",
        "1 MiB",
    ]


def test_only_gasnet_has_a_picture() -> None:
    done = CliRunner().invoke(bench, ["latency", "--plot", "a.svg"])
    assert done.exit_code == 2
    assert "only gasnet has a picture" in done.output
