"""`ompy-info` in this process, with distributions and settings of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from ompy.cli.info import main

from tests.support.installed import Installed


class Shown(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What was shown, when nothing was wrong."""
        assert (self.code, self.err) == (0, "")
        return self.out.splitlines()


Info = Callable[..., Shown]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    """Nothing set, no files, and a pigeon among the BTLs."""
    for key in [key for key in os.environ if "OMPY" in key]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OMPY_SYSCONFDIR", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Installed(tmp_path)
    yield made
    made.forget()


@pytest.fixture
def info(
    installed: Installed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Info:
    """Run the command: arguments, and variables of the environment."""

    def run(*arguments: str, **environ: str) -> Shown:
        with monkeypatch.context() as context:
            context.setenv("COLUMNS", "1000")  # tables as wide as they are
            for name, value in environ.items():
                context.setenv(name, value)
            code = main(arguments)
        installed.forget()
        return Shown(code, *capsys.readouterr())

    return run
