"""Memory that other processes map: found by address, gone with its last user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ompy.net.base import LinkError
from ompy.net.memory import vm
from ompy.net.memory.regions import REGIONS_MAX, Regions

SIZE = 1 << 16


def files() -> int:
    """Memory files that this process has open or mapped."""
    names = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.exists()]
    return sum("ompy-region" in name for name in names) + mapped()


def mapped() -> int:
    return Path("/proc/self/maps").read_text().count("ompy-region")


def test_memory_is_found_by_its_address() -> None:
    regions = Regions()
    first, second = regions.allocate(SIZE), regions.allocate(SIZE)
    assert bytes(first) == bytes(SIZE)
    here = vm.address_of(second)
    descriptor, number, offset = regions.find(here + 100, SIZE - 100) or (0, 0, 0)
    assert offset == 100
    assert os.fstat(descriptor).st_ino == number
    assert regions.find(here + 100, SIZE - 99) is None
    assert regions.find(vm.address_of(memoryview(bytearray(9))), 9) is None
    del first, second
    regions.close()


def test_another_process_sees_the_same_bytes() -> None:
    regions = Regions()
    view = regions.allocate(SIZE)
    view[7] = 99
    descriptor, number, _ = regions.find(vm.address_of(view), 1) or (0, 0, 0)
    program = (
        "import sys; from ompy.net.memory.regions import Regions\n"
        f"view = Regions().map({os.getpid()}, {descriptor}, {number})\n"
        "assert len(view) == 1 << 16 and view[7] == 99; view[8] = 55"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert view[8] == 55


def test_what_is_not_there_any_more_is_refused() -> None:
    regions, peer = Regions(), Regions()
    view = regions.allocate(SIZE)
    address = vm.address_of(view)
    descriptor, number, _ = regions.find(address, 1) or (0, 0, 0)
    with pytest.raises(LinkError, match="another file"):
        peer.map(os.getpid(), descriptor, number + 1)
    del view
    regions.release(address)
    regions.release(address)
    with pytest.raises(LinkError, match=r"cannot open|another file|cannot map"):
        peer.map(os.getpid(), descriptor, number)


def test_freed_pages_are_gone_though_a_peer_has_mapped_them() -> None:
    before = files()
    regions, peer = Regions(), Regions()
    view = regions.allocate(SIZE)
    view[:] = b"x" * SIZE
    address = vm.address_of(view)
    there = peer.map(os.getpid(), *(regions.find(address, 1) or (0, 0))[:2])
    assert there is peer.map(os.getpid(), *(regions.find(address, 1) or (0, 0))[:2])
    assert bytes(there) == b"x" * SIZE
    del view
    regions.release(address)
    assert bytes(there) == bytes(SIZE)  # no SIGBUS
    del there
    peer.close()
    assert files() == before


def test_who_still_looks_keeps_his_bytes() -> None:
    before = files()
    regions = Regions()
    view = regions.allocate(SIZE)
    view[:] = b"x" * SIZE
    regions.release(vm.address_of(view))
    assert bytes(view) == b"x" * SIZE
    del view
    assert files() == before


def test_there_is_an_end() -> None:
    regions = Regions()
    for _ in range(REGIONS_MAX):
        regions.allocate(4096)
    with pytest.raises(LinkError, match="128 regions"):
        regions.allocate(4096)
    regions.close()
    with pytest.raises(LinkError, match="no region of"):
        regions.allocate(1 << 60)
    assert not mapped()
