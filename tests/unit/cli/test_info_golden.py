"""What `ompy-info` shows, whole, of a made-up job and of one real component.

The files in `tests/golden/ompy_info` hold what is expected. After a change that is meant, write
them anew and look at the difference:

    OMPY_WRITE_GOLDEN=1 .venv/bin/python -m pytest -q tests/unit/cli/test_info_golden.py
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import ompy
import pytest
from ompy.cli.info.command import Options, command
from ompy.cli.info.pretty import Pretty
from ompy.cli.info.session import Session, output_for
from ompy.frameworks.catalog import CATALOG
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.registry import Registry

from tests.support import inventory
from tests.support.info_document import validate

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "ompy_info"
LABELS = "(?:Package|ompy|Python|Prefix|Host|Configured architecture|Hot modules)"
KEYS = "(?:package|ompy:version:full|python:version:full|path:prefix|config:arch|config:host"
KEYS += "|option:compiled)"
WRITE = os.environ.get("OMPY_WRITE_GOLDEN") == "1"

ALL = "--param gear all --param wire all --param match all"
NAMES = (
    "wire_every_a_int wire_every_all wire_every_lim wire_every_here wire_every_told wire_no_such "
    "wire tiny match:finder"
)
WHY = " ".join(f"--why {name}" for name in NAMES.split())
FORMS = {"pretty": "--pretty-print", "parsable": "--parsable", "json": "--json"}
EVERY_FORM = tuple(FORMS)
# beginning of the file's name: options, selection of wires, formats
VIEWS = {
    "default": ("", "", EVERY_FORM),
    "all": (f"{ALL} --level 9 --internal", "", EVERY_FORM),
    "level1": (ALL, "", ("pretty",)),
    "type_int": ("--type int --level 3", "", ("pretty",)),
    "excluded": ("--param wire all --level 4", "^small,torn", EVERY_FORM),
    "selected_only": (f"--selected-only {ALL}", "", ("pretty",)),
    "show_failed": ("--show-failed", "", ("pretty", "parsable")),
    "plugins": ("--plugins", "", EVERY_FORM),
    "why": (WHY, "", EVERY_FORM),
}
CASES = [(view, form) for view, (_, _, forms) in VIEWS.items() for form in forms]


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Components are in the same files on every machine."""
    monkeypatch.setattr(
        ComponentRecord, "file", property(lambda record: f"/site/{record.distribution}.py")
    )


def options(arguments: str) -> Options:
    return Options(**command.make_context("ompy-info", arguments.split()).params)


def shown(capsys: pytest.CaptureFixture[str], asked: Options, selection: str = "") -> str:
    given = inventory.settings(selection)
    if "wire_no_such" in asked.why:
        given.append(given[-1]._replace(name="wire_no_such"))
    Session(asked, output_for(asked), inventory.registry(given), given).answer()
    return capsys.readouterr().out


def normal(text: str) -> str:
    """Without what differs between machines, versions of ompy and of the made-up components."""
    if text.startswith("{"):
        return normal_document(json.loads(text))
    text = re.sub(rf"^( *{LABELS}: ).*$", r"\1...", text, flags=re.MULTILINE)
    text = re.sub(rf"^({KEYS}:).*$", r"\1...", text, flags=re.MULTILINE)
    return re.sub(r'File ".*", line \d+', "File ..., line ...", text)


def normal_document(document: dict[str, Any]) -> str:
    """The same of a JSON document, one item of each list on a line."""
    document["ompy"] = dict.fromkeys(document["ompy"], "...")
    for key in document.get("facts", {}):
        document["facts"][key] = "..." if re.fullmatch(KEYS, key) else document["facts"][key]
    lines = []
    for key, value in document.items():
        items = value if isinstance(value, list) else [value]
        lines += [f"{key}:", *(f"  {json.dumps(item)}" for item in items)]
    text = "\n".join(lines) + "\n"
    return re.sub(r'File \\".*?\\", line \d+', "File ..., line ...", text)


def check(name: str, text: str) -> None:
    file = GOLDEN / f"{name}.txt"
    if WRITE:
        file.write_text(text)
    expected = file.read_text() if file.exists() else ""
    assert text.splitlines() == expected.splitlines(), f"{file} differs; see this file's docstring"


@pytest.mark.parametrize(("view", "form"), CASES)
def test_a_made_up_job(view: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, selection, _ = VIEWS[view]
    text = shown(capsys, options(f"{arguments} {FORMS[form]}"), selection)
    if form == "json":
        validate(json.loads(text))
    check(f"{view}_{form}", normal(text))


def test_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    asked = options("--param wire every --why wire_every_told --why wire --plugins --show-failed")
    given = inventory.settings()
    output = Pretty(80, colour=True, tracebacks=True)
    Session(asked, output, inventory.registry(given), given).answer()
    check("terminal", normal(capsys.readouterr().out.replace("\x1b", "<ESC>")))


@pytest.mark.parametrize("form", FORMS)
def test_a_real_component(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = options(f"--param btl tcp --level 9 {FORMS[form]}")
    Session(asked, output_for(asked), Registry(CATALOG), []).answer()
    text = capsys.readouterr().out
    if form == "json":
        validate(json.loads(text))
    version = rf'((?:Component v|component:|version": ")){re.escape(ompy.__version__)}\b'
    check(f"tcp_{form}", re.sub(version, r"\1...", normal(text)))


def test_there_are_no_others() -> None:
    names = {f"{view}_{form}" for view, form in CASES} | {f"tcp_{form}" for form in FORMS}
    assert {file.stem for file in GOLDEN.iterdir()} == {*names, "terminal"}
