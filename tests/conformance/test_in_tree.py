"""The kit on every BTL of ours."""

from __future__ import annotations

import pytest
from ompy.conformance import BtlConformance
from ompy.frameworks.btl import BtlComponent
from ompy_components.btl.self.component import COMPONENT as SELF
from ompy_components.btl.sm.component import COMPONENT as SM
from ompy_components.btl.tcp.component import COMPONENT as TCP


class TestSelf(BtlConformance):
    @pytest.fixture
    def component(self) -> BtlComponent:
        return SELF


class TestSm(BtlConformance):
    @pytest.fixture
    def component(self) -> BtlComponent:
        return SM


class TestTcp(BtlConformance):
    @pytest.fixture
    def component(self) -> BtlComponent:
        return TCP
