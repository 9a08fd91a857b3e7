"""Fault scripts at work in the networks of a virtual world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ompy.conformance.btl.driver import Driver
from ompy.frameworks.context import RankContext
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.scripted import ScriptedFaults
from ompy.runtime.simulation.virtual_job import VirtualJob


def faults_of(context: RankContext, rules: Sequence[FaultRule], *, seed: int = 0) -> ScriptedFaults:
    """The script as the network of one rank has it."""
    return ScriptedFaults(
        rules,
        context.rank,
        context.size,
        engine=context.engine,
        network=context.network,
        trace=context.trace,
        seed=seed,
    )


def plan_of(
    rules: Sequence[FaultRule], made: list[ScriptedFaults], *, seed: int = 0
) -> Callable[[Driver], Sequence[Any]]:
    """The `plan` of a world of the conformance kit with this script; `made` gets each rank's."""

    def plan(driver: Driver) -> Sequence[Any]:
        made.append(faults_of(driver.context, rules, seed=seed))
        return made[-1:]

    return plan


def install(job: VirtualJob, rules: Sequence[FaultRule], *, seed: int = 0) -> list[ScriptedFaults]:
    """Put the script into the networks of a job. Returns it as each rank has it."""
    made = []
    for rank, network in enumerate(job.networks):
        engine, trace = job._board.engines[rank], job.traces[rank]
        parts = {"engine": engine, "network": network, "trace": trace, "seed": seed}
        made.append(ScriptedFaults(rules, rank, len(job.networks), **parts))
        network.install(made[-1])
    return made
