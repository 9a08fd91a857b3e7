"""Sessions of pytest inside of tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ompy.MPI  # noqa: F401 - before pytester takes note of what is imported
import pytest

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pytest with this plug-in and no other, in this process, as at somebody's desk."""
    for name in ("CI", "BUILD_NUMBER"):  # with one of them set pytest does not shorten its summary
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def inner(*arguments: Any) -> pytest.RunResult:
        return pytester.runpytest_inprocess("-p", "pytest_ompy.plugin", *arguments)

    return inner
