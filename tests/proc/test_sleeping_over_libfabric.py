"""Ranks that idle over libfabric's providers sleep in their event loop, with no set too many."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ompy.engine.real import RealEngine
from ompy.frameworks.nic.fabric import Caps, Hints
from ompy.net.real import RealNetwork
from ompy.runtime.launching.singleton import SingletonWireUp

from tests.support import two_hosts
from tests.support.effort import THOROUGH
from tests.support.libfabric_devices import fabric_nic, needs_libfabric
from tests.support.nesting import LIMIT
from tests.support.two_hosts import TwoHosts
from tests.support.worlds import ROOT

pytestmark = [pytest.mark.proc, needs_libfabric]

PAUSES = (0.3, 2.5) if THOROUGH else (0.3,)  # s; the loop is made after 0.1
PROGRAM = f"from tests.support.sleeping_programs import main; main{PAUSES!r}"
SETTINGS = {"btl": "self,ofi", "btl_ofi_provider_include": "tcp;ofi_rxm"}
# those that wake a sleeping rank, the deepest first; `net` is in libfabric 1.x what `tcp` is in 2.x
WAKING = ("net;ofi_rxm", "tcp;ofi_rxm", "tcp", "net", "sockets")
SLEEPLESS = ("shm", "udp;ofi_rxd")


def offered() -> set[str]:
    """The providers there are with this libfabric."""
    engine = RealEngine(1)
    network = RealNetwork(engine, 0, SingletonWireUp())
    nic = fabric_nic(network, wait=False)
    found = {info.provider for info in nic.infos(Hints(Caps.MSG | Caps.RMA))}
    nic.close()
    network.close()
    engine.close()
    return found


def check(said: list[str], provider: str) -> None:
    """Both have come to the end, and have not nested too deep."""
    depths = [int(number) for number in re.findall(r"deepest (\d+)", "".join(said))]
    assert len(depths) == 2, said
    assert max(depths) <= LIMIT
    if provider in WAKING:
        assert min(depths) >= 2, "nobody has slept in an event loop"


@pytest.mark.parametrize("provider", [*WAKING, *SLEEPLESS])
def test_on_one_host(provider: str) -> None:
    there = offered()
    if provider not in there:
        pytest.skip(f"this libfabric has none: {sorted(there)}")
    if not THOROUGH and provider != next(one for one in WAKING if one in there):
        pytest.skip("left to the nightly run")
    job = [sys.executable, "-m", "ompy.cli.run", "-n", "2", "--mca", "btl", "self,ofi"]
    job += ["--mca", "btl_ofi_provider_include", provider, sys.executable, "-c", PROGRAM]
    done = subprocess.run(job, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    check([done.stdout], provider)


@pytest.mark.nightly
@pytest.mark.skipif(bool(two_hosts.why_not()), reason=two_hosts.why_not())
def test_between_hosts(tmp_path: Path) -> None:
    """As it was found: libfabric 2.1 over tcp;ofi_rxm, a rank that idles over 100 ms."""
    with TwoHosts(how="") as hosts:
        codes, said, errors = hosts.run(tmp_path / "secret", PROGRAM, **SETTINGS)
    assert codes == [0, 0], errors
    check(said, "tcp;ofi_rxm")
