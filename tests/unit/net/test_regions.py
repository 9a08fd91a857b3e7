"""Memory that other processes map: found by address, gone with its last user."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from ompy.net.base import LinkError
from ompy.net.memory import vm
from ompy.net.memory.regions import Regions, regions_most

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


@pytest.mark.parametrize(
    ("descriptors", "most"),
    [(64, 128), (1024, 256), (20_000, 4096), (resource.RLIM_INFINITY, 4096)],
)
def test_there_is_an_end(monkeypatch: pytest.MonkeyPatch, descriptors: int, most: int) -> None:
    """How many there are follows from how many descriptors the process may have."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    assert regions_most() == most
    if most > 300:  # more than this process may have descriptors, on some machines
        return
    regions = Regions()
    for _ in range(most):
        regions.allocate(4096)
    with pytest.raises(LinkError, match=f"{most} regions"):
        regions.allocate(4096)
    regions.close()
    with pytest.raises(LinkError, match="no region of"):
        regions.allocate(1 << 60)
    assert not mapped()


def test_each_of_many_is_found() -> None:
    regions, random = Regions(), Random(7)
    views = [regions.allocate(4096 * random.randint(1, 3)) for _ in range(100)]
    random.shuffle(views)
    for gone in range(0, 100, 2):
        address = vm.address_of(views[gone])
        views[gone] = memoryview(b"")
        regions.release(address)
        assert regions.find(address, 1) is None
    numbers = set()
    for view in views[1::2]:
        found = regions.find(vm.address_of(view) + 100, len(view) - 100)
        assert found is not None
        assert found[2] == 100
        numbers.add(found[1])
        assert regions.find(vm.address_of(view) + 100, len(view)) is None
    assert len(numbers) == 50
    del view
    views.clear()
    regions.close()
    assert not mapped()
