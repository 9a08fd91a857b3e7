"""Which rank runs on which host: `--map-by` (reference openmpi.md 2.4). Starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ompy.cli.launch.command_line import RANKS_MAX, CommandError, counted, shown
from ompy.cli.launch.hosts import Allocation, Host
from ompy.cli.launch.rank_file import ListedRank, hosts_of_ranks, read_rank_file
from ompy.frameworks.job import Placement
from ompy.mca.errors import did_you_mean
from ompy.runtime.place.mapper import NODE, SLOT
from ompy.runtime.place.topology import LEVELS, PACKAGE

SEQ: Final = "seq"
PPR: Final = "ppr"
SOCKET: Final = "socket"  # Open MPI's older name of a package
RANK_FILE: Final = "rankfile"
POLICIES: Final = f"slot, node, {', '.join(LEVELS)}, ppr:N:OBJECT, seq and rankfile:FILE=PATH"
MODIFIERS: Final = "oversubscribe, nooversubscribe, span and PE=N"
_UNLIMITED: Final = 1 << 30  # ranks; arbitrary: more than any host takes


class MapBy(NamedTuple):
    """A `--map-by`, taken apart.

    Attributes:
        policy: `SLOT`, `NODE`, `PPR`, `SEQ`, `RANK_FILE` or a level of a host's topology.
        per_object: ranks on each object, with `PPR`.
        of: the objects: `NODE`, or a level.
        objects: how many of them each host is taken to have: as many as the launcher's.
        listed: the lines, with `RANK_FILE`.
        oversubscribe: what its modifier says about more ranks than slots, None for nothing.
        span: hosts get equal shares, as far as they have slots, in place of one after the other.
        elements: cores, or hardware threads, that each rank takes; 0: nothing is said.
    """

    policy: str = SLOT
    per_object: int = 0
    of: str = NODE
    objects: int = 1
    listed: tuple[ListedRank, ...] = ()
    oversubscribe: bool | None = None
    span: bool = False
    elements: int = 0

    @property
    def per_node(self) -> int:
        """Ranks on each host, with `PPR`."""
        return self.per_object * self.objects


class Layout(NamedTuple):
    """Where a job runs.

    Attributes:
        hosts: those with ranks, by node index.
        placements: one per rank, in rank order.
        slots: of all hosts that were allowed.
    """

    hosts: tuple[Host, ...]
    placements: tuple[Placement, ...]
    slots: int


def parse_map_by(text: str) -> MapBy:
    """Take the value of `--map-by` apart.

    Raises:
        CommandError: there is no such policy or modifier.
    """
    words = text.lower().split(":")
    policy = level_named(words.pop(0) or SLOT)
    if policy == RANK_FILE:
        return listed_in(_path_of(text))
    if policy == PPR:
        count, what = (*words[:2], "", "")[:2]
        number, level = counted(count) or 0, level_named(what)
        if not 1 <= number <= RANKS_MAX or level not in {NODE, *LEVELS}:
            objects = f"one of {', '.join((NODE, *LEVELS, SOCKET))}"
            text = (
                f"--map-by {shown(text)}: write ppr:N:OBJECT, for N ranks on each, OBJECT {objects}"
            )
            raise CommandError(f"{text}, N from 1 to {RANKS_MAX}{did_you_mean(level, LEVELS)}")
        return _modified(MapBy(policy, number, level), words[2:], text)
    if policy not in {SLOT, NODE, SEQ, *LEVELS}:
        near = did_you_mean(policy, (SLOT, NODE, SEQ, *LEVELS))
        raise CommandError(f"--map-by {shown(text)}: ranks are mapped by {POLICIES}{near}")
    return _modified(MapBy(policy), words, text)


def listed_in(path: str) -> MapBy:
    """The mapping that a rank file gives.

    Raises:
        CommandError: it makes no sense; the text names file and line.
    """
    return MapBy(RANK_FILE, listed=read_rank_file(path))


def _path_of(text: str) -> str:
    """The path in `rankfile:FILE=path`, as PRRTE writes it."""
    word = text.partition(":")[2]
    key, _, path = word.partition("=")
    if key.lower() != "file" or not path:
        text = f"--map-by {shown(text)}: write rankfile:FILE=PATH, or --rankfile PATH"
        raise CommandError(f"{text}; nothing stands behind it")
    return path


def level_named(word: str) -> str:
    """The level of a topology that a word of the command line means, if it means one."""
    return PACKAGE if word == SOCKET else word


def _modified(made: MapBy, words: Sequence[str], text: str) -> MapBy:
    """A mapping, with what stands behind it."""
    for word in words:
        name, _, number = word.partition("=")
        if word in {"oversubscribe", "nooversubscribe"}:
            made = made._replace(oversubscribe=word == "oversubscribe")
        elif word == "span":
            made = made._replace(span=True)
        elif name == "pe" and 1 <= (counted(number) or 0) <= RANKS_MAX:
            made = made._replace(elements=counted(number) or 0)
        else:
            raise CommandError(f"--map-by {shown(text)}: the modifiers are {MODIFIERS}")
    return made


def default_count(allocation: Allocation, map_by: MapBy) -> int:
    """How many ranks a program has that was given no number (reference openmpi.md 2.4)."""
    if map_by.policy == PPR:
        return map_by.per_node * len(allocation.hosts)
    if map_by.policy == SEQ:
        return len(allocation.mentions)
    if map_by.policy == RANK_FILE:
        return len(map_by.listed)
    return sum(host.slots for host in allocation.hosts)


def place_ranks(
    counts: Sequence[int],
    allocations: Sequence[Allocation | None],
    map_by: MapBy,
    *,
    oversubscribe: bool,
    all_hosts: bool = False,
    by_node: bool = False,
) -> Layout:
    """Give every rank a host.

    Args:
        counts: ranks of each program.
        allocations: hosts of each program; None for those of all the others.
        map_by: how.
        oversubscribe: whether a host may get more ranks than it has slots.
        all_hosts: keep those that get no rank, too.
        by_node: number the ranks in turn on the hosts, wherever they are mapped.

    Raises:
        CommandError: there is not enough room.
    """
    if sum(counts) > RANKS_MAX:
        text = f"{sum(counts)} processes were asked for; a job has {RANKS_MAX} at most"
        raise CommandError(text)
    table = _Table(allocations)
    nodes: list[tuple[int, str]] = []  # program and host of each rank
    for app, (count, allocation) in enumerate(zip(counts, allocations, strict=True)):
        allowed = allocation or table.everything()
        room = table.room(allowed)
        if map_by.policy == RANK_FILE:
            names = hosts_of_ranks(map_by.listed, len(nodes), count)
            _check_room(names, room, oversubscribe=oversubscribe)
        else:
            names = _map(count, allowed, room, map_by, oversubscribe=oversubscribe)
        table.take(names)
        names = _in_turn(names) if by_node else names
        nodes += [(app, name) for name in names]
    return table.layout(nodes, all_hosts=all_hosts)


class _Room(NamedTuple):
    """What a host has left for a program: ranks it is meant for, ranks it takes at most."""

    name: str
    slots: int
    limit: int


class _Table:
    """The hosts of a job and what is used of them."""

    def __init__(self, allocations: Sequence[Allocation | None]) -> None:
        self._hosts: dict[str, Host] = {}
        self._used: dict[str, int] = {}
        self._mentions: list[str] = []
        for allocation in allocations:
            for host in allocation.hosts if allocation else ():
                before = self._hosts.get(host.name)
                slots = host.slots + (before.slots if before else 0)
                self._hosts[host.name] = host._replace(slots=slots)
                self._used[host.name] = 0
            self._mentions += allocation.mentions if allocation else ()

    def everything(self) -> Allocation:
        return Allocation(tuple(self._hosts.values()), tuple(self._mentions))

    def room(self, allocation: Allocation) -> list[_Room]:
        return [self._left(host) for host in allocation.hosts]

    def _left(self, host: Host) -> _Room:
        whole, used = self._hosts[host.name], self._used[host.name]
        limit = max(host.max_slots - used, 0) if host.max_slots else _UNLIMITED
        return _Room(host.name, max(min(host.slots, whole.slots - used), 0), limit)

    def take(self, names: Sequence[str]) -> None:
        for name in names:
            self._used[name] += 1

    def layout(self, nodes: Sequence[tuple[int, str]], *, all_hosts: bool) -> Layout:
        every = self._hosts.values()
        hosts = tuple(host for host in every if all_hosts or self._used[host.name])
        index = {host.name: node for node, host in enumerate(hosts)}
        seen = [0] * len(hosts)
        placements = []
        for rank, (app, name) in enumerate(nodes):
            node = index[name]
            placements.append(Placement(rank, app, node, seen[node]))
            seen[node] += 1
        return Layout(hosts, tuple(placements), sum(host.slots for host in self._hosts.values()))


def _map(
    count: int, allowed: Allocation, room: Sequence[_Room], map_by: MapBy, *, oversubscribe: bool
) -> list[str]:
    """The host of each rank of one program, in rank order."""
    if map_by.policy == SEQ:
        return _in_sequence(count, allowed.mentions)
    if map_by.policy == PPR:
        return _per_node(count, room, map_by, oversubscribe=oversubscribe)
    dealt = map_by.policy == NODE or map_by.span
    shares = _shares(count, room, oversubscribe=oversubscribe, by_node=dealt)
    names = [one.name for one, share in zip(room, shares, strict=True) for _ in range(share)]
    return _in_turn(names) if map_by.policy == NODE else names


def _in_turn(names: Sequence[str]) -> list[str]:
    """The same hosts, each as often, in turn as long as there are ranks for them."""
    seen: dict[str, int] = {}
    turns = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        turns.append(seen[name])
    order = {name: place for place, name in enumerate(dict.fromkeys(names))}
    dealt = sorted(zip(turns, names, strict=True), key=lambda each: (each[0], order[each[1]]))
    return [name for _, name in dealt]


def _in_sequence(count: int, mentions: Sequence[str]) -> list[str]:
    if count > len(mentions):
        raise CommandError(
            f"--map-by seq: {count} processes were asked for, the hosts are named for "
            f"{len(mentions)}; name one for each process"
        )
    return list(mentions[:count])


def _check_room(names: Sequence[str], room: Sequence[_Room], *, oversubscribe: bool) -> None:
    """Raises CommandError: a host is given more ranks than it takes."""
    for one in room:
        count = names.count(one.name)
        if count > (one.limit if oversubscribe else min(one.slots, one.limit)):
            raise CommandError(
                f"--rankfile: {count} ranks are listed on {one.name}, which has room for "
                f"{min(one.slots, one.limit)}; {_advice(oversubscribe=oversubscribe)}"
            )


def _per_node(
    count: int, room: Sequence[_Room], map_by: MapBy, *, oversubscribe: bool
) -> list[str]:
    per_node = map_by.per_node
    asked = f"--map-by ppr:{map_by.per_object}:{map_by.of}"
    if count > per_node * len(room):
        raise CommandError(
            f"{asked}: {count} processes were asked for, {per_node} on each "
            f"of {len(room)} host(s) are {per_node * len(room)}"
        )
    names = [one.name for one in room for _ in range(min(per_node, count))]
    used = set(names[:count])
    full = [one for one in room if per_node > (one.limit if oversubscribe else one.slots)]
    for one in full:
        if one.name in used:
            raise CommandError(
                f"{asked}: {one.name} has {min(one.slots, one.limit)} slot(s) for {per_node}; "
                f"{_advice(oversubscribe=oversubscribe)}"
            )
    return names[:count]


def _shares(count: int, room: Sequence[_Room], *, oversubscribe: bool, by_node: bool) -> list[int]:
    """How many ranks each host gets: its slots first, then, if allowed, more, dealt evenly."""
    shares = [0] * len(room)
    left = _deal(count, shares, [min(one.slots, one.limit) for one in room], by_node=by_node)
    if left and oversubscribe:
        left = _deal(left, shares, [one.limit for one in room], by_node=True)
    if left:
        slots = ", ".join(f"{one.name} {one.slots}" for one in room)
        raise CommandError(
            f"{count} processes were asked for, the hosts have room for {count - left}: slots are "
            f"{slots}; {_advice(oversubscribe=oversubscribe)}"
        )
    return shares


def _advice(*, oversubscribe: bool) -> str:
    if oversubscribe:
        return "their max_slots allow no more"
    return "say how many there are (--host a:4, slots=4 in a hostfile) or --oversubscribe"


def _deal(count: int, shares: list[int], bounds: Sequence[int], *, by_node: bool) -> int:
    """Add up to `count` ranks to `shares`, none beyond its bound. Returns what is left."""
    if not by_node:
        for node, bound in enumerate(bounds):
            more = max(min(count, bound - shares[node]), 0)
            shares[node] += more
            count -= more
        return count
    while count and (open_ones := [n for n, bound in enumerate(bounds) if shares[n] < bound]):
        for node in open_ones[:count]:
            shares[node] += 1
        count -= min(count, len(open_ones))
    return count
