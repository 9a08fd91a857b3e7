"""How paths are asked about and taken back, from the parameters of the framework btl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.frameworks.paths.path_watch import MS, Probing

if TYPE_CHECKING:
    from ompy.frameworks.paths.healing import HealingLimits
    from ompy.mca.registry import Registry


def probing_of(registry: Registry | None) -> Probing:
    """As the parameters say; the defaults where a world has none."""
    if registry is None:
        return Probing()
    values = registry.values("btl")
    return Probing(
        values.probe_interval_ms * MS, values.probe_timeout_ms * MS, values.probe_patience_ms * MS
    )


def healing_of(registry: Registry) -> HealingLimits:
    """As the parameters say."""
    from ompy.frameworks.paths.healing import HealingLimits

    values = registry.values("btl")
    return HealingLimits(
        answers=values.heal_answers,
        pause_max=values.heal_pause_max_ms * MS,
        hold=values.heal_hold_ms * MS,
        hold_max=values.heal_hold_max_ms * MS,
        decay=values.heal_decay_ms * MS,
    )
