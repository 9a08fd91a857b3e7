"""Put and get between real processes: the kernel's copy, fragments, loopback connections."""

from __future__ import annotations

import os
import signal

import pytest
from ompy.net.base import LinkError
from ompy.net.memory.kernel_copy import KernelCopy

from tests.support.worlds import real

pytestmark = pytest.mark.proc

WAYS: dict[str, tuple[int, dict[str, object]]] = {
    "single copy": (2, {"btl": "self,sm"}),
    "fragments": (3, {"btl": "self,sm", "btl_sm_single_copy_mechanism": "emulated"}),
    "tcp": (3, {"btl": "self,tcp", "btl_tcp_flags": "send,put,get,inplace"}),
    "self": (1, {"btl": "self"}),
}


def kernel_copies() -> bool:
    """Whether this machine's kernel copies between processes of one user."""
    memory = memoryview(bytearray(b"here"))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        memory[:] = b"gone"
        os.write(writing, b".")
        signal.pause()
        os._exit(0)
    try:
        os.read(reading, 1)
        copy, seen = KernelCopy(), memoryview(bytearray(4))
        copy.read(child, copy.address_of(memory), seen)
        return bytes(seen) == b"gone"
    except LinkError:
        return False
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("way", WAYS)
def test_real_processes(way: str) -> None:
    ranks, settings = WAYS[way]
    for results in real(ranks, "tests.sim.rdma.programs:everything", settings=settings):
        name, moved, many, _, wrong, when = results
        assert settings["btl"] == ("self" if name == "self" else f"self,{name}")
        assert moved > 20
        assert many == 60
        assert wrong == []
        at_once = way == "self" or (way == "single copy" and kernel_copies())
        assert when == ("at once" if at_once else "later")
