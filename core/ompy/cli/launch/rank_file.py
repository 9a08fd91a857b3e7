"""A rank file: which host and which of its processors each rank has (`--rankfile`).

Lines are Open MPI's (reference openmpi.md 2.4): `rank 0=host slot=0:1`. Starts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ompy.cli.launch.command_line import RANKS_MAX, CommandError, counted, shown
from ompy.cli.launch.hosts import FILE_MAX, Allocation, Host, canonical_name, host_name
from ompy.mca.errors import did_you_mean
from ompy.runtime.place.listed import parse_slots

LINE: Final = "rank N=HOST slot=LIST"
RELATIVE: Final = "+n"  # before the index of a host of the allocation
_EQUALS: Final = re.compile(r"\s*=\s*")
_RANK: Final = re.compile(r"rank\s+", re.IGNORECASE)


class ListedRank(NamedTuple):
    """One line of a rank file.

    Attributes:
        rank: its number in the job.
        host: its name, or `+n` and its index among the hosts of the job.
        slots: what stands behind `slot=`; empty if nothing does: any of the host's.
        where: file and line.
    """

    rank: int
    host: str
    slots: str
    where: str


def read_rank_file(path: str) -> tuple[ListedRank, ...]:
    """The lines of a rank file, by rank.

    Raises:
        CommandError: it cannot be read, or a line is not one; the text names file and line.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(FILE_MAX + 1)
        if len(content) > FILE_MAX:
            raise CommandError(f"--rankfile {path}: it has more than {FILE_MAX >> 20} MiB")
        lines = content.decode().splitlines()
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise CommandError(f"--rankfile {path}: it cannot be read: {why}") from None
    found: dict[int, ListedRank] = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        listed = _line(text, f"{path}:{number}")
        if listed.rank in found:
            before = found[listed.rank].where
            raise CommandError(f"{listed.where}: rank {listed.rank} has a line already: {before}")
        found[listed.rank] = listed
    if not found:
        raise CommandError(f"--rankfile {path}: it has no line; expected {LINE}")
    return tuple(found[rank] for rank in sorted(found))


def _line(text: str, where: str) -> ListedRank:
    words = _EQUALS.sub("=", _RANK.sub("rank ", text, count=1)).split()
    if len(words) < 2 or words[0] != "rank":
        raise CommandError(f"{where}: expected {LINE}, found {shown(text)!r}")
    number, equals, host = words[1].partition("=")
    rank = counted(number)
    if rank is None or not 0 <= rank < RANKS_MAX:
        text = f"expected a rank from 0 to {RANKS_MAX - 1} behind the word rank"
        raise CommandError(f"{where}: {text}, found {shown(number)!r}")
    if not equals or not host:
        raise CommandError(f"{where}: expected =HOST behind rank {rank}; write {LINE}")
    if not host.startswith(RELATIVE):
        host_name(host, where)
    elif counted(host[len(RELATIVE) :]) is None:
        raise CommandError(f"{where}: expected {RELATIVE} and a number, found {shown(host)!r}")
    return ListedRank(rank, host, _slots(words[2:], where), where)


def _slots(words: Sequence[str], where: str) -> str:
    """The value of `slot=`, which may have blanks behind its commas and semicolons."""
    if not words:
        return ""
    key, equals, value = "".join(words).partition("=")
    if key.lower() not in {"slot", "slots"} or not equals:
        near = did_you_mean(key.lower(), ("slot",))
        raise CommandError(f"{where}: expected slot=LIST, found {shown(' '.join(words))!r}{near}")
    try:
        parse_slots(value)
    except ValueError as problem:
        raise CommandError(f"{where}: {shown(str(problem))}") from None
    return value


def resolve_hosts(
    listed: Sequence[ListedRank], allocation: Allocation | None, here: str
) -> tuple[tuple[ListedRank, ...], Allocation]:
    """The lines with the names of hosts, and the hosts of the job.

    Args:
        listed: the lines.
        allocation: hosts that the job may use; None for those that the file names.
        here: the name of this host.

    Returns:
        The lines, and the allocation: that given, or one with a slot for each line.

    Raises:
        CommandError: a line is about another host; the text names file and line.
    """
    names = [host.name for host in allocation.hosts] if allocation else [here]
    lines = tuple(_resolved(each, names, allocation, here) for each in listed)
    if allocation is None:
        mentions = tuple(line.host for line in lines)
        hosts = (Host(name, mentions.count(name)) for name in dict.fromkeys(mentions))
        allocation = Allocation(tuple(hosts), mentions)
    return lines, allocation


def _resolved(
    line: ListedRank, names: Sequence[str], allocation: Allocation | None, here: str
) -> ListedRank:
    if line.host.startswith(RELATIVE):
        index = counted(line.host[len(RELATIVE) :]) or 0
        if index >= len(names):
            last = len(names) - 1
            raise CommandError(f"{line.where}: {line.host}: the last host of the job is +n{last}")
        return line._replace(host=names[index])
    name = canonical_name(line.host, here)
    if allocation is not None and name not in names:
        near = did_you_mean(name, list(names))
        raise CommandError(f"{line.where}: host {name} is not among those of the job{near}")
    return line._replace(host=name)


def hosts_of_ranks(listed: Sequence[ListedRank], first: int, count: int) -> list[str]:
    """The hosts of the ranks of one program, in rank order.

    Raises:
        CommandError: a rank has no line.
    """
    found = {line.rank: line.host for line in listed}
    for rank in range(first, first + count):
        if rank not in found:
            path = listed[0].where.rpartition(":")[0]
            raise CommandError(f"--rankfile {path}: rank {rank} has no line")
    return [found[rank] for rank in range(first, first + count)]
