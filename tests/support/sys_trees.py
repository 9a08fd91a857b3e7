"""`/sys` trees of machines that are not here, laid out as Linux has them.

The numbers are what three machines tell of themselves; where they were shown stands beside each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ompy.runtime.place.topology import cpu_list

Threads = frozenset[int]


class Machine(NamedTuple):
    """Threads of each object."""

    packages: tuple[Threads, ...]
    nodes: tuple[Threads, ...]
    cores: tuple[Threads, ...]
    caches: Mapping[int, tuple[Threads, ...]]


def _step(first: int, end: int, step: int) -> Threads:
    return frozenset(range(first, end, step))


def _singles(count: int) -> tuple[Threads, ...]:
    return tuple(frozenset((n,)) for n in range(count))


def _two_runs(first: int, count: int, above: int) -> Threads:
    return frozenset(range(first, first + count)) | frozenset(
        range(first + above, first + count + above)
    )


def two_packages_in_turn() -> Machine:
    """Two Xeon E5-2603 v4, numbered in turn (hwloc-ls, github.com/susanow/susanow, 2017)."""
    packages = (_step(0, 12, 2), _step(1, 12, 2))
    cores = _singles(12)
    return Machine(packages, packages, cores, {1: cores, 2: cores, 3: packages})


def four_packages_out_of_order() -> Machine:
    """Four Xeon E7-4870; node 1 begins with thread 2 (Red Hat's performance guide)."""
    packages = tuple(_step(first, 40, 4) for first in (0, 2, 1, 3))
    cores = _singles(40)
    return Machine(packages, packages, cores, {1: cores, 2: cores, 3: packages})


def two_packages_of_clusters() -> Machine:
    """Two packages of two NUMA nodes, siblings 96 apart (a mail to linux-kernel: core 0,96, node
    0-23,96-119, package 0-47,96-143, 192 threads). Its caches are not told of there.
    """
    packages = (_two_runs(0, 48, 96), _two_runs(48, 48, 96))
    nodes = tuple(_two_runs(first, 24, 96) for first in range(0, 96, 24))
    return Machine(packages, nodes, tuple(frozenset((n, n + 96)) for n in range(96)), {})


def write_tree(root: Path, machine: Machine) -> str:
    """Lay a machine out under a folder; its path."""
    cpus, nodes = root / "devices/system/cpu", root / "devices/system/node"
    threads = frozenset[int]().union(*machine.packages)
    for thread in threads:
        topology = cpus / f"cpu{thread}" / "topology"
        _write(topology / "core_cpus_list", _of(thread, machine.cores))
        _write(topology / "package_cpus_list", _of(thread, machine.packages))
        for index, (level, caches) in enumerate(machine.caches.items()):
            cache = cpus / f"cpu{thread}" / "cache" / f"index{index}"
            _write(cache / "shared_cpu_list", _of(thread, caches))
            (cache / "level").write_text(f"{level}\n")
            (cache / "type").write_text("Unified\n" if level > 1 else "Data\n")
    _write(cpus / "online", threads)
    for number, node in enumerate(machine.nodes):
        _write(nodes / f"node{number}" / "cpulist", node)
    return str(root)


def _of(thread: int, objects: Iterable[Threads]) -> Threads:
    return next(each for each in objects if thread in each)


def _write(path: Path, threads: Threads) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{cpu_list(threads)}\n")
