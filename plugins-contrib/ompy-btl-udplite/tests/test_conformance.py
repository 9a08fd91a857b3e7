"""udplite keeps the BTL contract: ompy's conformance kit says so."""

from __future__ import annotations

import pytest
from ompy.conformance import BtlConformance

from ompy_btl_udplite.component import COMPONENT, UdpLite


class TestUdpLite(BtlConformance):
    @pytest.fixture
    def component(self) -> UdpLite:
        return COMPONENT
