"""Windows of real ranks over libfabric's providers and the emulated twin, from one test source."""

from __future__ import annotations

import pytest

from tests.support.effort import THOROUGH
from tests.support.libfabric_devices import needs_libfabric
from tests.support.windows_over_btls import contended, counted, mixed
from tests.support.worlds import real

pytestmark = pytest.mark.proc

COUNTED = f"{counted.__module__}:{counted.__name__}"
CONTENDED = f"{contended.__module__}:{contended.__name__}"
MIXED = f"{mixed.__module__}:{mixed.__name__}"
RANKS = 3
PROVIDERS = ("tcp;ofi_rxm", "shm", "sockets", "udp;ofi_rxd")
# makes atomics in a thread, beside the rank; crashes the target of those between puts and gets
NO_ATOMICS = ("sockets", "udp;ofi_rxd")
TWIN = {"btl": "self,ofi", "btl_ofi_nic": "ofi_emulated"}


def over(provider: str) -> dict[str, str]:
    return {"btl": "self,ofi", "btl_ofi_provider_include": provider}


@pytest.mark.nightly
@needs_libfabric
@pytest.mark.parametrize("provider", PROVIDERS if THOROUGH else PROVIDERS[:2])
def test_all_promises_over_libfabric(provider: str) -> None:
    for begun in real(RANKS, COUNTED, settings=over(provider)):
        assert begun["ofi put"]
        assert begun["ofi get"]
        assert ("ofi atomic" in begun) is (provider not in NO_ATOMICS)


@pytest.mark.nightly
def test_all_promises_over_the_twin() -> None:
    for begun in real(RANKS, COUNTED, settings=TWIN):
        assert min(begun[f"ofi {kind}"] for kind in ("put", "get", "atomic"))


@needs_libfabric
@pytest.mark.parametrize("provider", PROVIDERS if THOROUGH else ("shm",))
def test_no_sum_is_altered_when_all_add_at_once(provider: str) -> None:
    """shm 1.17 gives the buffer of an atomic without a result to two of them."""
    assert real(RANKS, CONTENDED, settings=over(provider)) == [2 * RANKS, 0, 0]


@needs_libfabric
@pytest.mark.parametrize("provider", PROVIDERS if THOROUGH else PROVIDERS[3:])
def test_counting_between_puts_and_gets(provider: str) -> None:
    """udp;ofi_rxd 1.17 crashes where an atomic comes between puts of more than a packet."""
    assert real(2, MIXED, settings=over(provider))[0] == 50
