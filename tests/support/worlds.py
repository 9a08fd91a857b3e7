"""Run one program per rank in the virtual world or in the real one, from one test source."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from ompy.frameworks.catalog import CATALOG
from ompy.mca.groups import HOOKS
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.plugins.discovery import scan_entry_points
from ompy.mca.registry import Registry
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

ROOT = Path(__file__).resolve().parents[2]
WORLDS = ("virtual", "real")


@cache
def _offered(path: tuple[str, ...]) -> Sequence[ComponentRecord]:
    """What is installed, looked for once: thousands of worlds are made of it."""
    frameworks = (*(framework for framework in CATALOG if framework.api is not None), HOOKS)
    return scan_entry_points(frozenset(framework.name for framework in frameworks))


def registry(**settings: object) -> Registry:
    """A registry with these parameters and nothing from files or the environment."""
    pairs = [(name, str(value)) for name, value in settings.items()]
    records = [
        deepcopy(record) for record in _offered(tuple(sys.path))
    ]  # a registry changes their states
    return Registry(CATALOG, gather_settings(pairs, {}, files=[]), records=records)


def virtual(
    ranks: int,
    program: Callable[[RankProcess], Any],
    *,
    seed: int = 0,
    rails: Sequence[Rail] = (Rail("rail0"),),
    trace: bool = False,
    **settings: object,
) -> VirtualJob:
    """Run a program on every rank of a virtual world; the job's `results` are their results."""
    job = VirtualJob(ranks, registry(**settings), seed=seed, rails=rails)
    job.results = job.run(program, trace=trace)  # type: ignore[attr-defined]
    return job


class RankError(AssertionError):
    """A rank of a real job failed."""


def real(
    ranks: int,
    program: str,
    *,
    settings: Mapping[str, object],
    mutant: str = "",
    timeout: float = 180,
) -> list[Any]:
    """Run `module:function` on every rank of a real job; JSON-able results, by rank."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks)]
        for name, value in settings.items():
            command += ["--mca", name, str(value)]
        command += [sys.executable, "-m", "tests.support.rank", program, folder, mutant]
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *_compiled_path()])},
        )
        if done.returncode:
            raise RankError(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return [json.loads(Path(folder, str(rank)).read_text()) for rank in range(ranks)]


def _compiled_path() -> list[str]:
    """The PYTHONPATH this run itself was started with: it may select the compiled tree."""
    return [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]


def find(program: str) -> Callable[[RankProcess], Any]:
    """The function `module:function` names."""
    module, _, name = program.partition(":")
    function: Callable[[RankProcess], Any] = getattr(importlib.import_module(module), name)
    return function


def both(world: str, ranks: int, program: str, *, seed: int = 0, mutant: str = "", **settings: Any):
    """Run `module:function` in a world of that kind. Returns the ranks' results."""
    if world == "real":
        return real(ranks, program, settings=settings, mutant=mutant)
    from tests.support.mutants import planted

    with planted(mutant):
        return virtual(ranks, find(program), seed=seed, **settings).results
