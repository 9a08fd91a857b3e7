"""The test classes of the command line: they get their subject from the run, not from a file."""

from __future__ import annotations

from typing import Any

import pytest

from ompy.conformance import (
    BtlConformance,
    CollConformance,
    HookConformance,
    NicConformance,
    OscConformance,
    PmlConformance,
)
from ompy.conformance.plugin import UNDER_TEST, Candidate
from ompy.conformance.registries import Settings


class Given:
    """What `examine` was given."""

    @pytest.fixture
    def component(self, request: pytest.FixtureRequest) -> Any:
        """The component of this run."""
        candidate: Candidate = request.config.stash[UNDER_TEST]
        return candidate.component

    @pytest.fixture
    def settings(self, request: pytest.FixtureRequest) -> Settings:
        """The settings of this run."""
        candidate: Candidate = request.config.stash[UNDER_TEST]
        return candidate.settings


class TestBtl(Given, BtlConformance):
    """The kit for BTLs on it."""


class TestColl(Given, CollConformance):
    """The kit for coll components on it."""


class TestHooks(Given, HookConformance):
    """The kit for hooks on it."""


class TestNic(Given, NicConformance):
    """The kit for nic components on it."""


class TestOsc(Given, OscConformance):
    """The kit for osc components on it."""


class TestPml(Given, PmlConformance):
    """The kit for PMLs on it."""
