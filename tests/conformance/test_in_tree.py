"""The kit on every BTL of ours."""

from __future__ import annotations

import pytest
from ompy.conformance import BtlConformance
from ompy.conformance.btl.atomics import AtomicSuite
from ompy.conformance.btl.completion import CompletionSuite
from ompy.conformance.btl.datagram_faults import DatagramFaultSuite
from ompy.conformance.btl.delivery import DeliverySuite
from ompy.conformance.btl.failover import FailoverSuite
from ompy.conformance.btl.identity import IdentitySuite
from ompy.conformance.btl.leaks import LeakSuite
from ompy.conformance.btl.life_cycle import LifeCycleSuite
from ompy.conformance.btl.reachability import ReachabilitySuite
from ompy.conformance.btl.remote_memory import RemoteMemorySuite
from ompy.conformance.registries import Settings
from ompy.frameworks.btl import BtlComponent
from ompy_components.btl.ofi.component import COMPONENT as OFI
from ompy_components.btl.openib.component import COMPONENT as OPENIB
from ompy_components.btl.self.component import COMPONENT as SELF
from ompy_components.btl.sm.component import COMPONENT as SM
from ompy_components.btl.tcp.component import COMPONENT as TCP
from ompy_components.btl.usnic.component import COMPONENT as USNIC

from tests.support.effort import THOROUGH, effort

JUMBO = {} if THOROUGH else {"nic_vic_mtu": 9000}  # a sixth of the packets


class TestSelf(BtlConformance):
    @pytest.fixture
    def component(self) -> BtlComponent:
        return SELF


class TestSm(BtlConformance):
    seeds = range(effort(2))

    @pytest.fixture
    def component(self) -> BtlComponent:
        return SM


class TestTcp(BtlConformance):
    seeds = range(effort(2))

    @pytest.fixture
    def component(self) -> BtlComponent:
        return TCP


class OfiInCi(FailoverSuite, AtomicSuite, RemoteMemorySuite, LifeCycleSuite, IdentitySuite):
    """What no other BTL does in quite this way; the others are nightly."""


class TestOfi(BtlConformance if THOROUGH else OfiInCi):  # type: ignore[misc]
    """Fragments are complete when the provider says so, and with failover when the peer does."""

    seeds = range(effort(1))

    @pytest.fixture
    def component(self) -> BtlComponent:
        return OFI


class OpenibInCi(
    LeakSuite,
    DatagramFaultSuite,
    FailoverSuite,
    AtomicSuite,
    RemoteMemorySuite,
    DeliverySuite,
    ReachabilitySuite,
    LifeCycleSuite,
    IdentitySuite,
):
    """Whose completions come as `TestOpenibWithCredits` has them; what takes longest is nightly."""


class TestOpenib(BtlConformance if THOROUGH else OpenibInCi):  # type: ignore[misc]
    """Shared queues, as Open MPI 4.1 has them by default."""

    seeds = range(effort(1))

    @pytest.fixture
    def component(self) -> BtlComponent:
        return OPENIB


class TestOpenibWithCredits(BtlConformance if THOROUGH else CompletionSuite):  # type: ignore[misc]
    """Buffers of each peer's own, few of them, so that credits run out; coalescing."""

    seeds = range(effort(1))

    @pytest.fixture
    def component(self) -> BtlComponent:
        return OPENIB

    @pytest.fixture
    def settings(self) -> Settings:
        return {
            "btl_openib_receive_queues": "P,256,8,4,4,2:P,4096,8:S,12288,16,12,4:P,65536,4",
            "btl_openib_use_message_coalescing": 1,
            "btl_openib_eager_rdma_num": 4,
            "btl_openib_eager_rdma_threshold": 3,
        }


class TestUsnic(BtlConformance):
    """Fragments are complete when they have been posted, tiny ones are sent fast."""

    seeds = range(effort(1))
    if not THOROUGH:  # two more interpreters, and its other tests of determinism are here
        test_hash_seed_has_no_part = None  # type: ignore[assignment]

    @pytest.fixture
    def component(self) -> BtlComponent:
        return USNIC

    @pytest.fixture
    def settings(self) -> Settings:
        return JUMBO


class TestUsnicWithFailover(BtlConformance if THOROUGH else FailoverSuite):  # type: ignore[misc]
    """Fragments are complete when the peer has them."""

    seeds = range(effort(1))

    @pytest.fixture
    def component(self) -> BtlComponent:
        return USNIC

    @pytest.fixture
    def settings(self) -> Settings:
        return {"btl_usnic_flags": "send,failover", **JUMBO}
