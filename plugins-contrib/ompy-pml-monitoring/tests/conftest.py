"""The plug-in is tested as it is used: installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest


def pytest_configure() -> None:
    try:
        version("ompy-pml-monitoring")
    except PackageNotFoundError:
        pytest.exit("install the plug-in first: pip install -e plugins-contrib/ompy-pml-monitoring")
