"""The real libfabric between two processes: its providers, leaks, a peer that is killed, usnic."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.effort import THOROUGH
from tests.support.fabric_checks import CHECKS
from tests.support.fabric_programs import PROGRAMS
from tests.support.libfabric_devices import needs_libfabric
from tests.support.libfabric_programs import CHECKED, PROVIDERS
from tests.support.worlds import ROOT, real

pytestmark = [pytest.mark.proc, needs_libfabric]

SUPPORT = "tests.support.libfabric_programs"
SETTINGS = {"btl": "self,sm"}  # for what the ranks tell each other
# s; arbitrary: those with connections notice at once, of the others none is known to
PATIENCE = {"tcp;ofi_rxm": 30, "shm": 1, "sockets": 30, "udp;ofi_rxd": 1}


@pytest.mark.nightly
def test_what_runs_over_the_emulated_device_runs_over_each_provider() -> None:
    wanted = [[provider, name] for provider in PROVIDERS for name in PROGRAMS]
    assert real(2, f"{SUPPORT}:all_programs", settings=SETTINGS, timeout=110) == [wanted, wanted]


def test_what_libfabrics_own_tests_look_at() -> None:
    wanted = [[provider, name] for provider in CHECKED for name in CHECKS]
    assert real(2, f"{SUPPORT}:all_checks", settings=SETTINGS, timeout=110) == [wanted, wanted]


@pytest.mark.nightly
def test_nothing_is_left_of_ten_thousand_operations() -> None:
    near, _ = real(2, f"{SUPPORT}:all_leaks", settings=SETTINGS, timeout=110)
    assert near == [[provider, 0, 0, 0, 0] for provider in PROVIDERS]


@pytest.mark.parametrize("provider", PROVIDERS if THOROUGH else PROVIDERS[::2])
def test_a_killed_peer_hangs_nobody(provider: str) -> None:
    """Where a connection breaks it is an error at once; where there is none, nobody waits."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.libfabric_kill", provider, str(PATIENCE[provider])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said = json.loads(done.stdout)
    assert bool(said) is (PATIENCE[provider] > 1), said


def test_usnic_over_the_provider_udp() -> None:
    """Messages of every size, before and after packets of a stranger, which are refused."""
    settings = {"btl": "self,usnic", "btl_usnic_nic": "libfabric"}
    assert all(real(2, f"{SUPPORT}:foreign", settings=settings, timeout=110))
