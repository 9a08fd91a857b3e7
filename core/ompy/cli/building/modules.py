"""What is compiled, and with which of the C compiler's optimisers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ompy.cli.forms import INLINE, PACKAGES

SHARED: Final = "ompy.cython_shared"  # module of Cython's own functions, which the others import
EXTENSION_SOURCE: Final = "_source.py"  # x_source.py writes the C of an extension x
# README.md has what each module costs and what it brings with which option
OPTIMISER: Final = "-Og"  # of those on the way of some messages: half the compiler's time of -O1
# those in which a message of 8 bytes takes more instructions with -O1 than with -O2
BUSIEST: Final = {
    "ompy.data.convertor": "-O2",
    "ompy.data.request": "-O2",
    "ompy.net.ring": "-O2",
    "ompy.trace.sink": "-O2",
    "ompy_components.pml.ob1.matching": "-O2",
    "ompy_components.pml.ob1.receiving": "-O2",
}
# those with a part in every message of some kind: it takes more instructions with -Og than with -O1
BUSY: Final = frozenset(
    (
        SHARED,
        "ompy.data.message",
        "ompy.data.operation",
        "ompy.engine.base",
        "ompy.engine.lock",
        "ompy.engine.real",
        "ompy.frameworks.bml",
        "ompy.frameworks.call_order",
        "ompy.mpi.collective_calls",
        "ompy.mpi.collectives",
        "ompy.mpi.handles",
        "ompy.mpi.object_collectives",
        "ompy.mpi.object_messages",
        "ompy.mpi.point_to_point",
        "ompy.mpi.spec",
        "ompy.net.pieces",
        "ompy_components.btl.self.module",
        "ompy_components.btl.sm.module",
        "ompy_components.btl.tcp.endpoint",
        "ompy_components.btl.tcp.framing",
        "ompy_components.coll.sm.board",
        "ompy_components.coll.sm.module",
        "ompy_components.coll.sm.operations",
        "ompy_components.pml.bfo.rdma",
        "ompy_components.pml.ob1.headers",
        "ompy_components.pml.ob1.module",
        "ompy_components.pml.ob1.rails",
        "ompy_components.pml.ob1.rdma",
        "ompy_components.pml.ob1.rdma_put",
        "ompy_components.pml.ob1.selection",
        "ompy_components.pml.ob1.sending",
    )
)
# those of which a message runs next to no instruction: what fails over has them
SELDOM: Final = frozenset(
    (
        "ompy_components.btl.ofi.failover",
        "ompy_components.pml.bfo.module",
        "ompy_components.pml.bfo.rails",
        "ompy_components.pml.bfo.receiving",
    )
)


def optimiser_of(name: str) -> str:
    """The option of the C compiler with which a module is compiled."""
    if name in BUSIEST:
        return BUSIEST[name]
    if name in BUSY:
        return "-O1"
    return "-O0" if name in SELDOM else OPTIMISER


def hot_modules(tree: Path) -> list[Path]:
    """The sources below `tree` with a declaration file beside them, sorted.

    Not those whose declaration files have it all and go into the modules that use them.

    Args:
        tree: the folder with the packages, or `core` or `components` of a clone.
    """
    found = (path for name in PACKAGES for path in (tree / name).rglob("*.pxd"))
    return sorted(
        path.with_suffix(".py")
        for path in found
        if path.stem not in INLINE and path.with_suffix(".py").exists()
    )


def dotted(tree: Path, path: Path) -> str:
    """The name under which a source below `tree` is imported."""
    return ".".join(path.relative_to(tree).with_suffix("").parts)


def extension_sources(tree: Path) -> list[Path]:
    """The modules that write the C of an extension beside them: `write(folder) -> Path`."""
    return sorted(
        path for name in PACKAGES for path in (tree / name).rglob(f"*?{EXTENSION_SOURCE}")
    )
