"""What ranks are bound to: `--bind-to` and its kin, and the parameters behind them. Starts nothing.

The options are Open MPI's (reference openmpi.md 2.4), but for the default: nothing is bound. What
cannot be done on this host is found here, before anything runs; on others their agents find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ompy.cli.launch.command_line import CommandError, Group, shown
from ompy.cli.launch.mapping import (
    PPR,
    RANK_FILE,
    MapBy,
    level_named,
    listed_in,
    parse_map_by,
)
from ompy.frameworks.places import (
    BINDING,
    CPU_SET,
    HWTHREADS,
    MAPPING,
    PER_RANK,
    RANKING,
    REPORT,
    TOPOLOGY,
)
from ompy.mca.errors import did_you_mean
from ompy.runtime.place.listed import join_slots
from ompy.runtime.place.mapper import FILL, NODE, NONE, SLOT, Rule
from ompy.runtime.place.topology import CORE, HWTHREAD, LEVELS, PlaceError

if TYPE_CHECKING:
    from ompy.cli.launch.mapping import Layout
    from ompy.mca.registry import Registry
    from ompy.runtime.place.host_place import HostPlace

OVERLOAD: Final = "overload-allowed"
IF_SUPPORTED: Final = "if-supported"


class PlaceWishes(NamedTuple):
    """Where ranks are to run.

    Attributes:
        map_by: on which hosts.
        rule: where on each; None if nothing is bound and nobody wants to know.
        by_node: ranks are numbered in turn on the hosts.
    """

    map_by: MapBy = MapBy()
    rule: Rule | None = None
    by_node: bool = False


class _Policy(NamedTuple):
    """A binding policy, taken apart."""

    level: str
    modifiers: frozenset[str]


def place_wishes(first: Group, registry: Registry | None = None) -> PlaceWishes:
    """What options say, or where they say nothing, parameters.

    Args:
        first: the first program's group.
        registry: of the job; None where it is not known yet.

    Raises:
        CommandError: it makes no sense.
    """
    asked = _Asked(first.options, registry)
    map_by = _map_by(asked, first.options["npernode"])
    rule = _rule(asked, map_by)
    if "oversubscribe" in first.given and first.options["oversubscribe"]:
        rule = rule._replace(overload=True)
    if rule.bind == NONE:
        _refuse_unbound(rule.elements, rule.cpus)
    if map_by.policy == PPR and map_by.of != NODE:
        map_by = map_by._replace(objects=_objects_here(rule, map_by))
    unbound = rule.bind == NONE and not rule.report
    return PlaceWishes(map_by, None if unbound else rule, rule.rank == NODE)


def _rule(asked: _Asked, map_by: MapBy) -> Rule:
    """Where on each host ranks run.

    Raises:
        CommandError: the options exclude each other, or one makes no sense.
    """
    elements = map_by.elements or asked.number("cpus_per_rank", PER_RANK)
    policy = _binding(asked.text("bind_to", BINDING, ""))
    hwthreads = asked.switch("use_hwthread_cpus", HWTHREADS)
    counted = HWTHREAD if hwthreads or HWTHREAD in (map_by.policy, map_by.of) else CORE
    dealt_over = map_by.of if map_by.per_object and map_by.of != NODE else map_by.policy
    slots = {line.rank: line.slots for line in map_by.listed if line.slots}
    if map_by.policy == RANK_FILE:
        _refuse_beside_rank_file(asked, policy.level, elements)
    default = counted if elements > 1 or slots else NONE
    return Rule(
        policy.level or default,
        dealt_over if dealt_over in {NODE, *LEVELS} else SLOT,
        _ranking(asked.text("rank_by", RANKING, SLOT)),
        elements,
        hwthreads=hwthreads,
        overload=bool(map_by.oversubscribe) or OVERLOAD in policy.modifiers,
        if_supported=IF_SUPPORTED in policy.modifiers,
        cpus=asked.text("cpu_set", CPU_SET, ""),
        topology=asked.text("", TOPOLOGY, ""),
        report=asked.switch("report_bindings", REPORT),
        per_object=map_by.per_object if map_by.of != NODE else 0,
        listed=join_slots(slots),
    )


def _refuse_beside_rank_file(asked: _Asked, level: str, elements: int) -> None:
    """A rank file says itself where each rank is."""
    if asked.is_given("rank_by"):
        raise CommandError(
            "--rankfile and --rank-by exclude each other: the file numbers the ranks"
        )
    if elements > 1:
        text = f"{elements} cores for each rank: the rank file says which each has"
        raise CommandError(f"{text}, as slot=0-{elements - 1}")
    if level not in {"", NONE, CORE, HWTHREAD}:
        text = f"--bind-to {level}: the rank file says what each rank is bound to"
        raise CommandError(f"{text}; write core, hwthread or none")


def _objects_here(rule: Rule, map_by: MapBy) -> int:
    """How many objects of a level this host has: others are taken to have as many.

    Raises:
        CommandError: it has none.
    """
    from ompy.runtime.place.host_place import host_topology

    try:
        return len(host_topology(rule).objects(map_by.of))
    except PlaceError as problem:
        text = f"--map-by ppr:{map_by.per_object}:{map_by.of}"
        raise CommandError(f"{text}: {problem}") from None


class _Asked:
    """Options, and parameters where these say nothing."""

    def __init__(self, options: dict[str, Any], registry: Registry | None) -> None:
        self._options = options
        self._registry = registry

    def is_given(self, option: str) -> bool:
        return self._options[option] is not None

    def text(self, option: str, parameter: str, default: str) -> str:
        given = self._options.get(option)
        if given is None and self._registry is not None:
            given = self._registry.value(parameter)
        return default if given is None else str(given)

    def number(self, option: str, parameter: str) -> int:
        return int(self.text(option, parameter, "1"))

    def switch(self, option: str, parameter: str) -> bool:
        given = bool(self._options[option])
        return given or bool(self._registry is not None and self._registry.value(parameter))


def _map_by(asked: _Asked, per_node: int | None) -> MapBy:
    given = [name for name in ("map_by", "npernode", "rankfile") if asked.is_given(name)]
    if len(given) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise CommandError(f"{names} exclude each other")
    if per_node:
        return MapBy(PPR, per_node)
    if asked.is_given("rankfile"):
        return listed_in(asked.text("rankfile", MAPPING, ""))
    return parse_map_by(asked.text("map_by", MAPPING, SLOT))


def _binding(text: str) -> _Policy:
    """Raises CommandError: there is no such policy or modifier."""
    level, *words = text.lower().split(":")
    level = level_named(level)
    if level not in {"", NONE, *LEVELS}:
        known = ", ".join((NONE, *LEVELS))
        near = did_you_mean(level, (NONE, *LEVELS))
        raise CommandError(f"--bind-to {shown(text)}: ranks are bound to one of {known}{near}")
    for word in words:
        if word not in {OVERLOAD, "no-overload", IF_SUPPORTED}:
            what = f"the modifiers are {OVERLOAD}, no-overload and {IF_SUPPORTED}"
            raise CommandError(f"--bind-to {shown(text)}: {what}")
    return _Policy(level, frozenset(words))


def _ranking(text: str) -> str:
    word = level_named(text.lower())
    if word not in {SLOT, NODE, FILL, *LEVELS}:
        words = (SLOT, NODE, FILL, *LEVELS)
        told = f"ranks are numbered by one of {', '.join(words)}{did_you_mean(word, words)}"
        raise CommandError(f"--rank-by {shown(text)}: {told}")
    return word


def _refuse_unbound(elements: int, cpus: str) -> None:
    """Some options are of use to bound ranks alone."""
    if elements > 1:
        raise CommandError(f"{elements} cores for each rank: --bind-to none binds no rank to any")
    if cpus:
        raise CommandError(f"--cpu-set {shown(cpus)}: no rank is bound; add --bind-to core")


def host_slots(rule: Rule | None, cores: int) -> int:
    """How many ranks this host is meant for, if nothing says so.

    Args:
        rule: where on it ranks run.
        cores: hardware threads that may be used.

    Raises:
        CommandError: its topology is not what the rule is about.
    """
    if rule is None or rule.bind == NONE:
        return cores
    made = _place(rule)
    return max(len(made.topology.objects(rule.unit)) // rule.elements, 1)


def _place(rule: Rule) -> HostPlace:
    from ompy.runtime.place.host_place import HostPlace

    try:
        return HostPlace(rule)
    except PlaceError as problem:
        raise CommandError(f"--bind-to {rule.bind}: {problem}") from None


def check_places(rule: Rule, layout: Layout, host: str, *, launching: bool) -> list[str]:
    """See that all ranks of this host have a place, and say which, for a look at it.

    Args:
        rule: where on each host ranks run.
        layout: which rank is on which host.
        host: this host.
        launching: ranks are started afterwards.

    Returns:
        A line for each rank.

    Raises:
        CommandError: there is not enough room.
    """
    if rule.topology and launching:
        text = f"{TOPOLOGY} {shown(rule.topology)} is another machine"
        raise CommandError(f"{text}; look at it with --do-not-launch --report-bindings")
    lines: dict[int, str] = {}
    for node, there in enumerate(layout.hosts):
        ranks = [placed.rank for placed in layout.placements if placed.node == node]
        lines |= _lines_of(rule, ranks, there.name, known=there.name == host or bool(rule.topology))
    return [lines[rank] for rank in sorted(lines)]


def _lines_of(rule: Rule, ranks: Sequence[int], name: str, *, known: bool) -> dict[int, str]:
    if not known:
        return {rank: f"rank {rank} on {name}: its agent will say" for rank in ranks}
    made = _place(rule)
    try:
        made.place_ranks(ranks)
    except PlaceError as problem:
        raise CommandError(f"host {name}: {problem}") from None
    return {rank: f"rank {rank} on {name} {made.describe_rank(rank)}" for rank in ranks}
