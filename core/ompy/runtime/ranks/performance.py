"""The performance variables of one rank: read now, and told to the launcher when the job ends."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.mca.performance import PVARS, chosen_names, full_name

if TYPE_CHECKING:
    from ompy.mca.performance import PerformanceVariable
    from ompy.runtime.ranks.client import AgentClient
    from ompy.runtime.ranks.process import RankProcess

UNEXPECTED: Final = "unexpected_msgq_length"  # as PMLs name it, and Open MPI
UNEXPECTED_MOST: Final = "unexpected_msgq_highest"
LOOKS: Final = 1_000_000  # ns between two; arbitrary: what is there for less is soon received


def declared(process: RankProcess) -> dict[str, PerformanceVariable]:
    """What the components that the rank uses have declared, by full name."""
    names = {("pml", process.context.pml_name)}
    names |= {("btl", module.name) for module in process.context.btls}
    found = {}
    for framework, component in sorted(names):
        for record in process.registry.records_of(framework):
            if record.name == component and record.component is not None:
                for variable in record.component.pvars:
                    found[full_name(framework, component, variable.name)] = variable
    return found


def measured(process: RankProcess) -> dict[str, int]:
    """The value of each of them; several modules of one component are added up."""
    found = dict.fromkeys(declared(process), 0)
    of_pml = process.pml.counted()
    of_pml[UNEXPECTED_MOST] = max(process.unexpected_most, of_pml.get(UNEXPECTED, 0))
    counted = [("pml", process.context.pml_name, of_pml)]
    counted += [("btl", module.name, module.counters()) for module in process.context.btls]
    for framework, component, counters in counted:
        for name, value in counters.items():
            full = full_name(framework, component, name)
            if full in found:
                found[full] += value
    return found


def tell_at_end(process: RankProcess, client: AgentClient) -> None:
    """Where the job asks for some: tell them once, as the rank begins to finalize or is ended."""
    wanted = str(process.registry.value(PVARS))
    if not wanted:
        return
    told = False

    def tell() -> None:
        nonlocal told
        if not told:
            told = True
            values = measured(process)
            client.tell_counted({name: values[name] for name in chosen_names(wanted, values)})

    def end() -> None:
        tell()
        if before is not None:
            before()

    before, client.before_end = client.before_end, end
    process.before_finalize.append(tell)
    watch_unexpected(process)


def watch_unexpected(process: RankProcess) -> None:
    """Look at the queue of unexpected messages every so often, and keep the most there were."""
    if process.finalized:
        return
    length = process.pml.counted().get(UNEXPECTED, 0)
    process.unexpected_most = max(process.unexpected_most, length)
    process.context.engine.call_later(LOOKS, partial(watch_unexpected, process))
