"""udpkept keeps the BTL contract and the failover obligations: ompy's conformance kit says so."""

from __future__ import annotations

import pytest
from ompy.conformance import BtlConformance

from ompy_btl_udplite.failover import COMPONENT, UdpKept


class TestUdpKept(BtlConformance):
    @pytest.fixture
    def component(self) -> UdpKept:
        return COMPONENT
