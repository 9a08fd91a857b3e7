"""`ompy trace` for other tools: what is written, and what is said where that cannot be."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from ompy.cli.tracing import dissector
from ompy.cli.tracing.trace import trace
from ompy.trace.exporting import otf2_archive

EXAMPLES = Path(__file__).parents[2] / "support" / "mutant_examples" / "exported"


@pytest.fixture
def job(tmp_path: Path) -> str:
    folder = tmp_path / "run1"
    folder.mkdir()
    for rank in (0, 1):
        shutil.copy(EXAMPLES / f"tcp-{rank}.jsonl", folder / f"rank-{rank}.jsonl")
    return str(folder)


def ompy_trace(*arguments: str) -> Result:
    result = CliRunner().invoke(trace, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def test_all_at_once(job: str, tmp_path: Path) -> None:
    pytest.importorskip("otf2", reason="OTF2's Python package is not installed")
    names = {"--otf2": "archive", "--pcapng": "job.pcapng", "--chrome": "c.json"}
    paths = {option: str(tmp_path / name) for option, name in names.items()}
    lua = str(tmp_path / "ompy.lua")
    given = [word for pair in paths.items() for word in pair]
    done = ompy_trace(*given, "--dissector", lua, job)
    assert done.exit_code == 0, done.output
    assert all(os.path.exists(path) for path in (*paths.values(), lua))
    assert len(done.output.splitlines()) == 4
    again = ompy_trace(*given, job)  # what is there is replaced
    assert again.exit_code == 0, again.output
    assert sorted(os.listdir(paths["--otf2"])) == ["traces", "traces.def", "traces.otf2"]
    assert sorted(os.listdir(tmp_path)) == sorted([*names.values(), "ompy.lua", "run1"])


def test_a_dissector_needs_no_trace(tmp_path: Path) -> None:
    lua = str(tmp_path / "ompy.lua")
    assert ompy_trace("--dissector", lua).exit_code == 0
    assert "@FORMATS@" not in Path(lua).read_text()
    assert ompy_trace("--dissector", lua, "--chrome", str(tmp_path / "c.json")).exit_code == 2
    assert ompy_trace().exit_code == 2


@pytest.mark.parametrize("option", ["--otf2", "--pcapng", "--chrome"])
def test_no_trace(option: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no trace")
    for place, said in ((plain, "cannot be read"), (tmp_path, "holds no trace")):
        done = ompy_trace(option, str(tmp_path / "out"), str(place))
        assert (done.exit_code, done.output.count("\n")) == (2, 1)
        assert said in done.output
    (tmp_path / "rank-0.jsonl").write_text("{}\n")
    assert "is damaged" in ompy_trace(option, str(tmp_path / "out"), str(tmp_path)).output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--otf2", "--pcapng", "--chrome", "--dissector"])
def test_what_cannot_be_written(option: str, job: str, tmp_path: Path) -> None:
    if option == "--otf2":
        pytest.importorskip("otf2", reason="OTF2's Python package is not installed")
    before = sorted(os.listdir(tmp_path))
    for place in (tmp_path / "no" / "such", Path("/proc/ompy")):
        done = ompy_trace(option, str(place), job)
        assert done.exit_code == 1
        assert f"{option} {place}: it cannot be written: " in done.output
    assert sorted(os.listdir(tmp_path)) == before


def test_other_files_are_not_taken_for_an_archive(job: str, tmp_path: Path) -> None:
    pytest.importorskip("otf2", reason="OTF2's Python package is not installed")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("all of it")
    done = ompy_trace("--otf2", str(tmp_path / "mine"), job)
    assert done.exit_code == 1
    assert "of no OTF2 archive" in done.output
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "all of it"


def test_without_the_library(job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, *_: Any) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(otf2_archive, "import_module", missing)
    done = ompy_trace("--otf2", str(tmp_path / "archive"), job)
    assert done.exit_code == 1
    assert "pip install 'ompy[otf2]'" in done.output
    assert not (tmp_path / "archive").exists()


def test_a_damaged_trace_is_written_as_far_as_it_goes(job: str, tmp_path: Path) -> None:
    with open(Path(job, "rank-1.jsonl"), "a") as file:
        file.write("]\n")
    done = ompy_trace("--pcapng", str(tmp_path / "job.pcapng"), job)
    assert done.exit_code == 0
    assert "damaged" in done.stderr
    assert (tmp_path / "job.pcapng").stat().st_size > 1000


def test_a_trace_without_packets(job: str, tmp_path: Path) -> None:
    for rank in (0, 1):
        path = Path(job, f"rank-{rank}.jsonl")
        lines = [line for line in path.read_text().splitlines() if '"wire"' not in line]
        path.write_text("\n".join(lines) + "\n")
    done = ompy_trace("--pcapng", str(tmp_path / "job.pcapng"), job)
    assert done.exit_code == 1
    assert "trace_base_wire" in done.output


def test_a_component_with_wrong_declarations_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = dissector.load_target

    def load(target: str) -> object:
        return 7 if target.endswith("btl.tcp.wire:WIRE") else found(target)

    monkeypatch.setattr(dissector, "load_target", load)
    done = ompy_trace("--dissector", str(tmp_path / "ompy.lua"))
    assert done.exit_code == 0
    assert "btl tcp is left out" in done.stderr
    assert "tcp.frame" not in (tmp_path / "ompy.lua").read_text()
