"""What the documents name exists; what they show is compared by the gate `wheel`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import tools.package.documents
from tests.support.effort import THOROUGH
from tools.package.documents import commands, difference, documents, follow

ROOT = Path(__file__).resolve().parents[2]
KNOWN_PAGES = (
    "ci",
    "faults",
    "gasnet",
    "install",
    "seeing",
    "simulation",
    "trace-tools",
    "watching",
    "write-a-nic",
)
GUIDES = (
    "docs/faults.md",
    "docs/gasnet.md",
    "docs/seeing.md",
    "docs/simulation.md",
    "docs/watching.md",
)
DOCUMENTS = ("README.md", "ARCHITECTURE.md", *GUIDES)
# where the documents' short paths begin
BASES = (ROOT, ROOT / "docs", ROOT / "core" / "ompy", ROOT / "components" / "ompy_components")
OUTPUT = "the token went around 4 rank(s) and collected 6"


def setups() -> list[str]:
    """The README's two commands."""
    return re.findall(r"^    (python3 -m venv .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)


def braces(text: str) -> list[str]:
    """`a/{b,c}/d` as a/b/d and a/c/d."""
    found = re.search(r"\{([^}]*)\}", text)
    if not found:
        return [text]
    words = found.group(1).split(",")
    return [text[: found.start()] + word + text[found.end() :] for word in words]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_exist(document: str) -> None:
    text = (ROOT / document).read_text()
    named = set(re.findall(r"`([\w{},.-]+/[\w{},./-]*)`", text))
    named |= set(re.findall(r"\]\(([\w./-]+)\)", text))
    assert named
    missing = [
        path
        for name in named
        for path in braces(name)
        if not any((base / path).exists() for base in BASES)
    ]
    assert not missing


def pages() -> list[Path]:
    """Every page of the tree that people write."""
    folders = ("docs", "core", "components", "plugins-contrib", "configs", "examples", "tests")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.md")]
    return [*ROOT.glob("*.md"), *(path for path in found if "generated" not in path.parts)]


def dead_links(page: Path) -> list[str]:
    """Links of a page to files that are not there; those in code are no links."""
    text = re.sub(r"`[^`\n]*`|^ {4}.*$|^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", text)
    paths = [
        target for target in targets if "://" not in target and not target.startswith("mailto:")
    ]
    return [target for target in paths if not (page.parent / target).exists()]


def test_links_lead_somewhere() -> None:
    """To other hosts they are not followed."""
    assert len(pages()) > 60
    assert {
        str(page.relative_to(ROOT)): dead_links(page) for page in pages() if dead_links(page)
    } == {}


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a](page.md#b) [c](d.md) `[e](f.md)` [g](http://h/i)\n\n    [j](k.md)\n")
    assert dead_links(page) == ["d.md"]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90


def test_ci_runs_the_second_command() -> None:
    first, second = setups()
    assert "ompy-run -n 4" in first
    assert second in (ROOT / ".ci" / "run").read_text().splitlines()


def test_the_pages_that_show_commands_are_known() -> None:
    """The gate `wheel` runs them; here only that they are found."""
    found = {str(page.relative_to(ROOT)): len(commands(page)) for page in documents()}
    assert found["README.md"] >= 7
    assert {f"docs/{name}.md" for name in KNOWN_PAGES} <= set(found)
    assert "plugins-contrib/ompy-pml-monitoring/README.md" in found


SHOWN = """
`given.txt`:

```
as it is
```

    $ cat shown.txt
    first

    last

    $ cat given.txt shown.txt; echo took 1.250 s
    as it is
    last
    first
    took 0.001 s

Prose.
"""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SHOWN, ""),
        (SHOWN + "\n    $ false\n", "it ended with 1"),
        ("```python\n# a.py\n```\n\n    $ wc -l a.py\n    0 a.py\n", ""),
        ("```python\n# b.py\n```\n\n    $ wc -l a.py\n    1 a.py\n", "no line like"),
        (SHOWN.replace("    last\n    first\n    took", "    last\n    took"), "also"),
        (SHOWN.replace("    last\n    first\n    took", "    ...\n    took"), ""),
        (SHOWN.replace("took 0.001 s", "took 7 s"), "no line like"),
        (SHOWN + "\n    $ echo Traceback >&2\n", "a traceback"),
    ],
)
def test_what_is_shown_is_compared(text: str, problem: str, tmp_path: Path) -> None:
    page, folder = tmp_path / "page.md", tmp_path / "work"
    page.write_text(text)
    folder.mkdir()
    wrong = follow(page, folder, dict(os.environ))
    assert len(wrong) == bool(problem)
    assert all(problem in line for line in wrong)


FENCED = """
```
$ {program} one
one
...
$ {program} two
three
```
"""


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("echo", "no line like 'three'"),
        ("no-such-program", ""),  # it is not here, as other people's programs may not be
        ("pip install", ""),
        ("echo \"pip install 'ompy[top]'\" >&2; false", ""),
        ("false", "no line like 'one'"),
    ],
)
def test_a_fenced_command_is_run_where_its_program_is(
    program: str, problem: str, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(FENCED.replace("{program}", program))
    assert [command.line for command in commands(page)] == [f"{program} one", f"{program} two"]
    wrong = follow(page, tmp_path, dict(os.environ))
    assert bool(wrong) == bool(problem)
    assert problem in "".join(wrong)


def test_times_are_compared_by_their_form() -> None:
    assert difference(["handled after 657.1 us"], ["handled after 19.2 ms"]) == ""
    assert "no line like" in difference(["handled after 657.1 us"], ["handled after 19.2 s"])


def environments() -> Iterator[str]:
    """Of all processes that we may see."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended, or is another user's
            yield path.read_text(errors="replace")


def test_what_a_missing_library_would_have_made_is_not_looked_for(tmp_path: Path) -> None:
    (tmp_path / "missing.sh").write_text("echo \"pip install 'ompy[otf2]'\" >&2; exit 1\n")
    page = tmp_path / "page.md"
    blocks = ("$ sh missing.sh\n$ false", "$ false")
    page.write_text("".join(f"```\n{block}\nshown\n```\n\n" for block in blocks))
    wrong = follow(page, tmp_path, dict(os.environ))
    assert len(wrong) == 1, "the second block counts on nothing"


@pytest.mark.timeout(60)
def test_what_takes_too_long_is_ended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it has started, and as one more thing that is wrong: the rest is run."""
    monkeypatch.setattr(tools.package.documents, "TIME_LIMIT", 0.5)
    page, mark = tmp_path / "page.md", f"MARK={tmp_path}"
    page.write_text("    $ sleep 600 & echo failed; wait\n\n    $ false\n")
    wrong = follow(page, tmp_path, {**os.environ, "MARK": str(tmp_path)})
    assert "it was ended after 0.5 s" in wrong[0]
    assert len(wrong) == 2
    while any(mark in one for one in environments()):
        time.sleep(0.01)


@pytest.mark.proc
@pytest.mark.network
@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it; the gate wheel installs, too")
@pytest.mark.timeout(600)
def test_the_first_command_in_a_fresh_copy(tmp_path: Path) -> None:
    """Without a C compiler: nothing needs one."""
    probe = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path)]
    reached = subprocess.run([*probe, "pluggy"], capture_output=True, text=True)
    if reached.returncode:
        pytest.skip(f"no package index here: {reached.stderr.strip().splitlines()[-1:]}")
    unwanted = shutil.ignore_patterns(".git", ".venv", "build", "dist", "__pycache__", ".*_cache")
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=unwanted)
    kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run(
        setups()[0],
        shell=True,
        cwd=copy,
        env={**kept, "CC": "false", "CXX": "false"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == OUTPUT
