"""The kit on the reference BTL, which has every capability."""

from __future__ import annotations

import pytest
from ompy.conformance import BtlConformance

from tests.conformance.reference import COMPONENT


class TestReference(BtlConformance):
    seeds = range(1)

    @pytest.fixture
    def component(self):
        return COMPONENT
