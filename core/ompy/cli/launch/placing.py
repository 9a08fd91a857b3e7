"""How many ranks a job has, and which host each is on: from options, hostfiles, an allocation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ompy.cli.launch.binding import PlaceWishes, host_slots
from ompy.cli.launch.command_line import CommandError, Group
from ompy.cli.launch.hosts import Allocation, Host, allocate_slots
from ompy.cli.launch.mapping import default_count, place_ranks
from ompy.cli.launch.rank_file import resolve_hosts

if TYPE_CHECKING:
    from ompy.cli.launch.mapping import Layout, MapBy

DEFAULT_HOSTFILE: Final = "OMPI_MCA_orte_default_hostfile"  # as Kubernetes' mpi-operator sets it


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def place_programs(
    groups: Sequence[Group], host: str, wishes: PlaceWishes
) -> tuple[list[int], Layout]:
    """How many ranks each program has, and where all of them run.

    Raises:
        CommandError: there is not enough room, or the options make no sense together.
    """
    first, map_by, managed = groups[0], wishes.map_by, _managed()
    slots = host_slots(wishes.rule, cores())
    allocations = [
        allocate_slots(group.options["hosts"], _hostfiles(group), host, slots, managed)
        for group in groups
    ]
    oversubscribe = first.options["oversubscribe"]
    named = any(allocations)
    if map_by.listed:
        map_by, allocations = _listed(map_by, allocations, host)
        named = True
    if map_by.oversubscribe is not None:
        oversubscribe = map_by.oversubscribe
    elif named and "oversubscribe" not in first.given:
        oversubscribe = False
    everything = Allocation((Host(host, slots),), (host,) * slots)
    if not named:
        allocations = [everything] * len(groups)
    counts = [group.options["count"] for group in groups]
    if None in counts:
        if len(groups) > 1:
            missing = groups[counts.index(None)]
            text = f"each of several programs needs its -n: {missing.argv[0]} has none"
            raise CommandError(text)
        counts = [default_count(allocations[0] or everything, map_by)]
    if not named:
        _refuse_crowd(sum(counts), slots, allowed=oversubscribe)
        allocations = [everything, *[None] * (len(groups) - 1)]
    return counts, place_ranks(
        counts,
        allocations,
        map_by,
        oversubscribe=oversubscribe,
        all_hosts=first.options["all_hosts"],
        by_node=wishes.by_node,
    )


def _listed(
    map_by: MapBy, allocations: Sequence[Allocation | None], host: str
) -> tuple[MapBy, list[Allocation | None]]:
    """A rank file's mapping with names of hosts, and the hosts of each program.

    Raises:
        CommandError: programs have different hosts, or a line is about another one.
    """
    if any(each != allocations[0] for each in allocations):
        raise CommandError("--rankfile: all programs have the same --host and --hostfile")
    lines, allocation = resolve_hosts(map_by.listed, allocations[0], host)
    everywhere: list[Allocation | None] = [None] * (len(allocations) - 1)
    return map_by._replace(listed=lines), [allocation, *everywhere]


def _managed() -> list[tuple[str, int]] | None:
    """What a resource manager has given."""
    from ompy.runtime.launching.allocation import allocated_hosts

    try:
        return allocated_hosts(os.environ)
    except ValueError as problem:
        text = "the allocation (SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE) cannot be understood"
        raise CommandError(f"{text}: {problem}; unset SLURM_JOB_ID to leave it alone") from None


def _hostfiles(group: Group) -> tuple[str, ...]:
    """Those of the command line, or the one that Kubernetes' MPI operator gives its launcher."""
    given: tuple[str, ...] = group.options["hostfiles"]
    default = os.environ.get(DEFAULT_HOSTFILE, "")
    return given or ((default,) if default and not group.options["hosts"] else ())


def _refuse_crowd(count: int, slots: int, *, allowed: bool) -> None:
    if not allowed and count > slots:
        raise CommandError(
            f"{count} processes were asked for, {slots} cores are available and "
            "--nooversubscribe was given"
        )
