"""The command `ompy-info` as a process: terminals, pipes, and what it imports.

What it shows is tested in `tests/unit/cli`.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import sysconfig
from pathlib import Path

import ompy
import pytest

from tests.support.installed import Installed

pytestmark = pytest.mark.proc

COMMAND = str(Path(sysconfig.get_path("scripts"), "ompy-info"))


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def run(installed: Installed, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=installed.environ | environ,
    )


def on_a_terminal(installed: Installed, *arguments: str, **environ: str) -> str:
    """What is written to a terminal of 80 columns."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, COMMAND, *arguments],
        stdout=slave,
        env=installed.environ | {"COLUMNS": "80", "TERM": "xterm"} | environ,
    ) as process:
        os.close(slave)
        output = b""
        try:
            while data := os.read(master, 65536):
                output += data
        except OSError:  # what Linux says when the other end is closed
            pass
    os.close(master)
    assert process.returncode == 0
    return output.decode()


def test_the_default_listing(installed: Installed) -> None:
    done = run(installed)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"                 Package: ompy {ompy.__version__}"
    assert "                 MCA btl: pigeon (MCA v2.1.0, API v3.1.0, Component v2.5)" in lines


@pytest.mark.parametrize("arguments", [("--all",), ("--why", "pigeon")])
def test_nothing_is_coloured_or_wrapped_in_a_pipe(
    installed: Installed, arguments: tuple[str, ...]
) -> None:
    text = run(installed, *arguments, COLUMNS="40").stdout
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) > 60


def test_lines_are_wrapped_on_a_terminal(installed: Installed) -> None:
    lines = on_a_terminal(installed, "--param", "btl", "base", "--level", "9").splitlines()
    assert max(map(len, lines)) <= 80
    assert "                          default, level: 2 user/detail, type: string)" in lines


def test_states_are_coloured_on_a_terminal(installed: Installed) -> None:
    assert "\x1b[32mopened" in on_a_terminal(installed, "--plugins")
    assert "\x1b" not in run(installed, "--plugins").stdout
    for refusal in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_a_terminal(installed, "--plugins", **refusal)
    assert "\x1b" not in on_a_terminal(installed, "--plugins", "--color", "never")


@pytest.mark.parametrize("arguments", [("--all",), ("--version",), ("--all", "--json")])
def test_a_reader_that_goes_away_ends_it_quietly(
    installed: Installed, arguments: tuple[str, ...]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [sys.executable, COMMAND, *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=installed.environ,
    ) as process:
        os.close(writing)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (141, b"")


def test_closed_standard_output_is_no_error(installed: Installed) -> None:
    shell = ["sh", "-c", f"{sys.executable} {COMMAND} --version >&-; echo $?"]
    done = subprocess.run(shell, capture_output=True, text=True, check=False, env=installed.environ)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_the_version_needs_next_to_nothing(installed: Installed) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", COMMAND, "--version"],
        capture_output=True,
        text=True,
        check=False,
        env=installed.environ,
    )
    assert done.stdout.splitlines()[0] == f"ompy v{ompy.__version__}"
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines()}
    ours = {name for name in imported if name.startswith("ompy")}
    assert ours - {"ompy.compiled_loader", "ompy.compiled_modules"} == {
        *("ompy", "ompy.cli", "ompy.cli.forms", "ompy.cli.hot", "ompy.cli.info")
    }
    assert imported.isdisjoint({"click", "pydantic", "structlog", "importlib.metadata", "typing"})
