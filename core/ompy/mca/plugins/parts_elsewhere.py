"""Components and frameworks of Open MPI that ompy does without: launch lines go on naming them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# of Open MPI 4 and 5, by `ompi_info`; those that ompy has, too, are not here
COMPONENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "pml": ("cm", "monitoring", "ucx", "v", "yalla"),
    "btl": ("portals4", "smcuda", "uct", "ugni"),
    "coll": ("acoll", "adapt", "cuda", "ftagree", "han", "hcoll", "libnbc", "ucc", "xhc"),
    "osc": ("monitoring", "portals4", "ucx"),
    "io": ("romio314", "romio321", "romio341"),
}
FRAMEWORKS: Final = (
    *("accelerator", "crcp", "ess", "filem", "grpcomm", "memory", "mtl", "odls", "oob", "opal"),
    *("orte", "patcher", "pmix", "prte", "ras", "rcache", "routed", "rte", "schizo"),
    *("smsc", "spml", "topo", "vprotocol"),
)
KINDS: Final = tuple(f"{kind}_{name}" for kind, names in COMPONENTS.items() for name in names)


def component_elsewhere(framework: str, name: str, *, alone: bool) -> str:
    """A clause about a component that only Open MPI has; empty if it has none either.

    Args:
        framework: what it is a component of.
        name: its own.
        alone: no other is named beside it.
    """
    if name not in COMPONENTS.get(framework, ()):
        return ""
    return f"; it is Open MPI's, and ompy needs none: leave {'it' if alone else name} out"


def parameter_elsewhere(name: str) -> str:
    """A clause about a parameter of such a component, or of a framework that only Open MPI has."""
    if not any(name == part or name.startswith(f"{part}_") for part in (*FRAMEWORKS, *KINDS)):
        return ""
    return "; it is Open MPI's, and has no meaning here: leave it out"
