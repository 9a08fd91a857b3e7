"""btl/ofi between processes: over libfabric's providers, and over the emulated twin."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.effort import THOROUGH
from tests.support.libfabric_devices import needs_libfabric
from tests.support.ofi_programs import AHEAD, features, outrun
from tests.support.worlds import both, real

pytestmark = pytest.mark.proc

PROGRAMS = "tests.sim.p2p.programs"
FEATURES = f"{features.__module__}:{features.__name__}"
PROVIDERS = ("tcp;ofi_rxm", "shm", "sockets", "udp;ofi_rxd")
EVERY_TYPE = "all types"


@pytest.mark.nightly
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
@pytest.mark.parametrize("provider", PROVIDERS if THOROUGH else ["sockets"])
def test_a_receiver_that_computes_is_not_outrun(provider: str) -> None:
    """`sockets` never goes on where a message finds no buffer."""
    settings = {"btl": "self,ofi", "btl_ofi_provider_include": provider, "btl_ofi_rd_num": "4"}
    program = f"{outrun.__module__}:{outrun.__name__}"
    assert real(2, program, settings=settings, timeout=60) == [0, AHEAD]


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


@needs_libfabric
def test_what_strangers_can_crash_is_off_unless_it_is_named() -> None:
    """Not taken where nothing else is left; taken with one warning where it is asked for."""
    job = [sys.executable, "-m", "ompy.cli.run", "-n", "2", "--mca", "btl", "self,ofi"]
    program = [sys.executable, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.barrier()"]
    for name, value, code in (("exclude", "shm,tcp,net", 1), ("include", "sockets", 0)):
        settings = ["--mca", f"btl_ofi_provider_{name}", value]
        done = subprocess.run([*job, *settings, *program], capture_output=True, text=True)
        said = " ".join(done.stderr.split())
        assert done.returncode == code, said
        if code:
            for provider in ("sockets", "udp;ofi_rxd"):
                assert f"{provider}: it is off unless btl_ofi_provider_include names it:" in said
        else:
            assert said.count("sockets is used because btl_ofi_provider_include names it") == 1
            assert "hangs the ranks" in said


def test_the_emulated_twin() -> None:
    settings = {"btl": "self,ofi", "btl_ofi_nic": "ofi_emulated"}
    report, _ = real(2, FEATURES, settings=settings)
    assert report["provider"] == "emulated"
    assert report["atomic CSWAP"] == EVERY_TYPE
