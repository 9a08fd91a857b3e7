"""Jobs in the virtual world, with what they wrote about their traffic."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ompy.frameworks.catalog import CATALOG
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

Program = Callable[[RankProcess], Any]


def registry(**settings: object) -> Registry:
    """Monitoring, enabled, and what is in the tree; nothing from files or the environment."""
    told = {"btl": "self,sm", "pml_monitoring_enable": "true", **settings}
    pairs = [(name, str(value)) for name, value in told.items()]
    return Registry(CATALOG, gather_settings(pairs, {}, files=[]))


def run(
    ranks: int,
    programs: Sequence[Program] | Program,
    *,
    seed: int = 0,
    **settings: object,
) -> list[Any]:
    """Run one program for all ranks, or one for each; what they returned, by rank."""
    return VirtualJob(ranks, registry(**settings), seed=seed).run(programs)


def monitored(
    path: Path, ranks: int, programs: Sequence[Program] | Program, **more: Any
) -> dict[str, Any]:
    """Run, and read the report that rank 0 wrote."""
    file = path / "traffic.json"
    run(ranks, programs, pml_monitoring_output=file, **more)
    told: dict[str, Any] = json.loads(file.read_text())
    return told
