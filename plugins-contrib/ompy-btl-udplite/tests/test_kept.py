import pytest
from ompy.conformance import BtlConformance
from ompy.frameworks.capabilities import Capabilities
from ompy.frameworks.context import RankContext

from ompy_btl_udplite.component import UdpLite
from ompy_btl_udplite.failover import KeptModule


class UdpKept(UdpLite):
    name = "udplite"
    capabilities = Capabilities(reach="network", wire="datagram", checksum=True, heals=True)

    def init(self, context: RankContext):
        return [KeptModule(context, self.values)] if context.size > 1 else []


class TestKept(BtlConformance):
    @pytest.fixture
    def component(self):
        return UdpKept()
