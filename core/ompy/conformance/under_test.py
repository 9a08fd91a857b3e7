"""The test class of the command line: it gets its component from the run, not from a file."""

from __future__ import annotations

import pytest

from ompy.conformance import BtlConformance
from ompy.conformance.registries import Settings
from ompy.conformance.plugin import UNDER_TEST, Candidate
from ompy.frameworks.btl import BtlComponent


class TestBtl(BtlConformance):
    """The kit on what `examine` was given."""

    @pytest.fixture
    def component(self, request: pytest.FixtureRequest) -> BtlComponent:
        """The component of this run."""
        candidate: Candidate = request.config.stash[UNDER_TEST]
        return candidate.component

    @pytest.fixture
    def settings(self, request: pytest.FixtureRequest) -> Settings:
        """The settings of this run."""
        candidate: Candidate = request.config.stash[UNDER_TEST]
        return candidate.settings
