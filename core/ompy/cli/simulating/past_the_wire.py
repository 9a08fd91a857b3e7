"""What ranks of one host do past every wire, so that a fault script cannot strike it.

Shared memory has no wire (`btl` sm; GASNet's PSHM). A job whose script means to strike what goes
there would run as if nothing were wrong, so it is warned of before it begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ompy.net.faults.fault_rules import RETRYING_RAILS, STORAGE_FAULTS

if TYPE_CHECKING:
    from ompy.frameworks.job import Job
    from ompy.mca.registry import Registry
    from ompy.net.faults.fault_rules import FaultRule


def through_memory(btl: str) -> bool:
    """Whether a value of the parameter `btl` lets sm in."""
    names = set(btl.lstrip("^").split(","))
    return not btl or bool({"sm", "vader"} & names) is not btl.startswith("^")


def unstruck(rules: Sequence[FaultRule], job: Job, registry: Registry) -> Iterator[str]:
    """What the rules cannot strike in a job, a sentence for each reason.

    Args:
        rules: of its fault script.
        job: whose ranks share hosts, or do not.
        registry: with its parameters.
    """
    if len(job.hosts) == len(job.placements):
        return
    rails = set(RETRYING_RAILS)
    rules = [rule for rule in rules if rule.what not in STORAGE_FAULTS]
    of_sockets = any(not rails & set(rule.rails) for rule in rules)
    if of_sockets and through_memory(str(registry.value("btl"))):
        yield (
            "ranks of one host talk through shared memory (btl sm), where there is no wire for a "
            "fault to strike; --mca btl self,tcp or self,usnic takes the network (GASNet: --mca "
            "conduit_aries_pshm 0, and a fault that names the rail aries_0)"
        )
    for rail in sorted(rails.intersection(rail for rule in rules for rail in rule.rails)):
        name = f"conduit_{rail.partition('_')[0]}_pshm"
        if registry.value(name):
            yield (
                f"ranks of one host reach each other past {rail}, through shared memory (PSHM), "
                f"where no fault strikes; --mca {name} 0 takes the NIC"
            )
