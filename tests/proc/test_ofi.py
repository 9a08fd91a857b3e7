"""btl/ofi between processes: over libfabric's providers, and over the emulated twin."""

from __future__ import annotations

import pytest

from tests.support.effort import THOROUGH
from tests.support.libfabric_devices import needs_libfabric
from tests.support.ofi_programs import features
from tests.support.worlds import both, real

pytestmark = pytest.mark.proc

PROGRAMS = "tests.sim.p2p.programs"
FEATURES = f"{features.__module__}:{features.__name__}"
PROVIDERS = ("tcp;ofi_rxm", "shm", "sockets", "udp;ofi_rxd")
EVERY_TYPE = "all types"


@needs_libfabric
@pytest.mark.parametrize("provider", PROVIDERS)
def test_put_get_and_every_atomic(provider: str) -> None:
    settings = {"btl": "self,ofi", "btl_ofi_provider_include": provider}
    report, _ = real(2, FEATURES, settings=settings)
    assert report["provider"] == provider
    assert {report[name] for name in ("fragments", "put", "get", "refused access")} == {"yes"}
    atomics = {name: types for name, types in report.items() if name.startswith("atomic ")}
    assert len(atomics) == 11
    assert set(atomics.values()) == {EVERY_TYPE}


@needs_libfabric
@pytest.mark.parametrize("provider", PROVIDERS if THOROUGH else PROVIDERS[:1])
def test_messages(provider: str) -> None:
    settings = {"btl": "self,ofi", "btl_ofi_provider_include": provider}
    both("real", 3, f"{PROGRAMS}:growing", **settings)


@needs_libfabric
@pytest.mark.parametrize(
    "settings",
    [
        {"btl": "self,ofi", "btl_ofi_mode": "two-sided", "btl_ofi_seal": "mac"},
        {"btl": "self,ofi,tcp", "btl_ofi_mode": "one-sided"},
        {"btl": "self,ofi,tcp", "pml": "bfo", "btl_tcp_exclusivity": "1024"},
    ],
    ids=["two-sided", "one-sided", "failover"],
)
def test_modes(settings: dict[str, str]) -> None:
    both("real", 2, f"{PROGRAMS}:growing", **settings)


def test_the_emulated_twin() -> None:
    settings = {"btl": "self,ofi", "btl_ofi_nic": "ofi_emulated"}
    report, _ = real(2, FEATURES, settings=settings)
    assert report["provider"] == "emulated"
    assert report["atomic CSWAP"] == EVERY_TYPE
