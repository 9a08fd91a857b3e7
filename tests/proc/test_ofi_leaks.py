"""Nothing of btl/ofi is left of very many operations: over libfabric's providers, and the twin."""

from __future__ import annotations

from functools import partial

import pytest
from ompy.frameworks.btl_base.device_memory import DeviceMemoryTable

from tests.support.effort import THOROUGH, effort
from tests.support.libfabric_devices import needs_libfabric
from tests.support.ofi_leaks import leaks, left_of, too_much
from tests.support.worlds import real, virtual

pytestmark = pytest.mark.proc

PROGRAM = f"{leaks.__module__}:{leaks.__name__}"
PROVIDERS = ("shm", "tcp;ofi_rxm", "sockets", "udp;ofi_rxd")
SIMULATED = 500  # operations of each kind: one is many steps of the network


@pytest.mark.nightly
@needs_libfabric
@pytest.mark.parametrize("provider", PROVIDERS if THOROUGH else PROVIDERS[:2])
def test_nothing_is_left_over_libfabric(provider: str) -> None:
    settings = {"btl": "self,ofi", "btl_ofi_provider_include": provider}
    found = real(2, PROGRAM, settings=settings, timeout=300)
    assert [too_much(one) for one in found] == [{}, {}]


@pytest.mark.parametrize("pml", ["ob1", "bfo"])
def test_nothing_is_left_over_the_twin(pml: str) -> None:
    """With bfo fragments are kept until they are acknowledged.

    The process has both ranks and the network between them: its objects tell nothing.
    """
    program = partial(left_of, count=effort(SIMULATED))
    found = virtual(2, program, btl="self,ofi", pml=pml).results
    assert [too_much({**one, "objects": 0}) for one in found] == [{}, {}]


def test_a_registration_that_is_not_given_back_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceMemoryTable, "remove", lambda *_: None)
    found = virtual(2, partial(left_of, count=30), btl="self,ofi").results
    # of rank 0, for each put and get one
    assert [one["registrations"] for one in found] == [60, 0]
    assert [one["of the device"] for one in found] == [60, 0]


@pytest.mark.parametrize("kind", ["registrations", "objects", "failed"])
def test_what_is_left_is_seen(kind: str) -> None:
    clean = {"registrations": 0, "objects": 10, "failed": 0}
    assert too_much(clean) == {}
    assert too_much({**clean, kind: 10_000}) == {kind: 10_000}
