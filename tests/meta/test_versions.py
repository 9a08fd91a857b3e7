"""The Pythons and the architectures that ompy is made for are the same wherever they are named."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.package.every_python import ROOT, SETTINGS, main, version_of, versions

WORKFLOWS = ROOT / ".github" / "workflows"
WHEELS = SETTINGS["tool"]["cibuildwheel"]
TAGS = ["cp" + version.replace(".", "") for version in versions()]


def jobs(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((WORKFLOWS / f"{name}.yml").read_text())["jobs"])


def test_the_oldest_python_is_the_same_everywhere() -> None:
    oldest = versions()[0]
    assert versions() == [f"3.{minor}" for minor in range(int(oldest[2:]), int(oldest[2:]) + 4)]
    assert SETTINGS["project"]["requires-python"] == f">={oldest}"
    assert SETTINGS["tool"]["mypy"]["python_version"] == oldest
    assert SETTINGS["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert f"Python {oldest} or newer" in (ROOT / "README.md").read_text()
    for path in (ROOT / "plugins-contrib").glob("*/pyproject.toml"):
        project = tomllib.loads(path.read_text())["project"]
        assert project["requires-python"] == f">={oldest}", path


def test_wheels_are_made_for_each() -> None:
    assert WHEELS["build"] == [f"{tag}-*" for tag in TAGS]
    matrix = jobs("release")["wheels"]["strategy"]["matrix"]
    assert matrix["python"] == TAGS
    assert matrix["arch"] == WHEELS["linux"]["archs"]
    assert [one["arch"] for one in matrix["include"]] == matrix["arch"]
    combinations = itertools.product(matrix["python"], matrix["libc"], matrix["arch"])
    (counted,) = re.findall(r"wc -l\)\" = (\d+)", (WORKFLOWS / "release.yml").read_text())
    assert len(list(combinations)) == int(counted)
    assert jobs("ci")["wheel"]["strategy"]["matrix"]["python"] == versions()


def test_only_the_last_job_may_publish() -> None:
    """And only from a tag, when all before it has passed."""
    found = jobs("release")
    allowed = {name for name, job in found.items() if "permissions" in job}
    assert allowed == {"publish"}
    assert found["publish"]["permissions"] == {"id-token": "write"}
    assert found["publish"]["needs"] == "check"
    assert found["check"]["needs"] == ["sdist", "wheels"]
    assert found["publish"]["if"] == "github.ref_type == 'tag'"


def test_what_the_wheels_are_tried_with_is_there() -> None:
    folder, tool, option = re.findall(r"\{project\}/(\S+) (\S+) (\S+)", WHEELS["test-command"])[0]
    assert f'"{option}"' in (ROOT / folder / f"{tool}.py").read_text()


def test_the_image_copies_what_is_there() -> None:
    text = (ROOT / "Containerfile").read_text()
    for source in re.findall(r"^COPY (?:--chown=\S+ )?(?!--from)(\S+) ", text, re.MULTILINE):
        assert (ROOT / source).exists(), source
    extras = re.search(r"/source\[(.*)\]", text)
    assert extras
    assert set(extras[1].split(",")) <= set(SETTINGS["project"]["optional-dependencies"])
    assert "USER ompy" in text.rpartition("FROM")[2]


def test_who_is_not_on_this_machine_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nor is a shim that leads nowhere; nothing tried is no success."""
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\necho no such version >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/nowhere")
    assert version_of("python3.12") == ""
    monkeypatch.setattr("sys.argv", ["every_python.py"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    said = capsys.readouterr().out.splitlines()
    assert said == [f"python{version}: is not on this machine" for version in versions()]
