"""How paths are asked about, from the parameters of the framework btl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.frameworks.paths import MS, Probing

if TYPE_CHECKING:
    from ompy.mca.registry import Registry


def probing_of(registry: Registry | None) -> Probing:
    """As the parameters say; the defaults where a world has none."""
    if registry is None:
        return Probing()
    values = registry.values("btl")
    return Probing(
        values.probe_interval_ms * MS, values.probe_timeout_ms * MS, values.probe_patience_ms * MS
    )
