"""The hosts a job may use: `--host` and `--hostfile` (reference openmpi.md 2.4). Starts nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ompy.cli.launch.command_line import RANKS_MAX, CommandError, counted, shown
from ompy.mca.errors import did_you_mean

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1"})
SLOT_KEYS: Final = frozenset({"slots", "count", "cpu", "cpus"})  # reference openmpi.md 2.4
LIMIT_KEYS: Final = frozenset({"max_slots", "slots_max", "cpu_max", "count_max"})  # same
USER_KEYS: Final = frozenset({"username", "user_name"})  # same
PORT_KEY: Final = "port"
_KEYS: Final = sorted({*SLOT_KEYS, *LIMIT_KEYS, *USER_KEYS, PORT_KEY})
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # never an option of a remote shell
_EQUALS: Final = re.compile(r"\s*=\s*")
PORT_MAX: Final = 65535  # TCP's largest port
NAME_MAX: Final = 255  # characters; RFC 1035 2.3.4 has so many for a name of the DNS
FILE_MAX: Final = 64 << 20  # bytes; arbitrary: a line of 64 for each of a million hosts


class Host(NamedTuple):
    """A host and how much of it may be used.

    Attributes:
        name: as the user wrote it; this host always by its own name.
        slots: ranks it is meant for.
        max_slots: ranks it takes at most, whatever else was said; 0 for any number.
        user: to log in as, empty for the remote shell's default.
        port: of its remote shell, 0 for the default.
    """

    name: str
    slots: int
    max_slots: int = 0
    user: str = ""
    port: int = 0


class Allocation(NamedTuple):
    """The hosts of one program.

    Attributes:
        hosts: each once, in the order they were first named.
        mentions: names as often as they have slots where they were written: `--map-by seq`.
    """

    hosts: tuple[Host, ...]
    mentions: tuple[str, ...]


class _Mention(NamedTuple):
    """One word of `--host`, or one line of a hostfile.

    Attributes:
        host: what it says; one slot if it says nothing about them.
        counted: it says how many slots there are.
    """

    host: Host
    counted: bool


def allocate_slots(
    host_options: Sequence[str],
    hostfiles: Sequence[str],
    here: str,
    cores: int,
    managed: Sequence[tuple[str, int]] | None = None,
) -> Allocation | None:
    """What `--host` and `--hostfile` of one program allow; None if nothing says anything.

    Args:
        host_options: values of `--host`.
        hostfiles: values of `--hostfile`.
        here: the name of this host.
        cores: of this host.
        managed: hosts and slots that a resource manager has given; then no others.

    Raises:
        CommandError: they make no sense; the text names word, or file and line.
    """
    named = [
        _word(word.strip(), here, cores)
        for option in host_options
        for word in option.split(",")
        if word.strip()
    ]
    if host_options and not named:
        raise CommandError("--host names no host; write --host a,b:2")
    listed = [mention for path in hostfiles for mention in _file(path, here)]
    if hostfiles:
        listed = _only(listed, named, ", ".join(hostfiles)) if named else listed
        named = listed
    if managed is not None:
        given = [
            _Mention(Host(canonical_name(n, here), slots), counted=True) for n, slots in managed
        ]
        return _merge(_only(given, named, "the allocation of this job") if named else given)
    return _merge(named) if named else None


def _word(word: str, here: str, cores: int) -> _Mention:
    """`name`, `name:slots` or `name:*`, with `user@` before it or without."""
    where = f"--host {word}"
    name, colon, count = word.partition(":")
    user, name = _login(name, where)
    name = canonical_name(name, here)
    where = shown(where)
    if not colon:
        return _Mention(Host(name, 1, user=user), counted=False)
    if count == "*":
        if name != here:
            text = f"{where}: the cores of {name} are not known here; write {name}:N"
            raise CommandError(text)
        return _Mention(Host(name, cores, user=user), counted=True)
    return _Mention(Host(name, _number(count, where, "slots"), user=user), counted=True)


def _file(path: str, here: str) -> list[_Mention]:
    try:
        with open(path, "rb") as file:
            content = file.read(FILE_MAX + 1)
        if len(content) > FILE_MAX:
            raise CommandError(f"--hostfile {path}: it has more than {FILE_MAX >> 20} MiB")
        lines = content.decode().split("\n")
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise CommandError(f"--hostfile {path}: it cannot be read: {why}") from None
    found = []
    for number, line in enumerate(lines, 1):
        words = _EQUALS.sub("=", line.partition("#")[0]).split()
        if words:
            found.append(_line(words, f"{path}:{number}", here))
    if not found:
        raise CommandError(f"--hostfile {path}: it names no host")
    return found


def _line(words: Sequence[str], where: str, here: str) -> _Mention:
    """`name slots=N` of Open MPI, or `name:N` of MPICH."""
    first, counted, number = words[0].partition(":")
    user, name = _login(first, where)
    slots, limit, port = _number(number, where, "slots") if counted else 1, 0, 0
    for word in words[1:]:
        written, equals, value = word.partition("=")
        key = written.lower().replace("-", "_")
        if not equals or key not in _KEYS:
            near = did_you_mean(key, _KEYS)
            raise CommandError(f"{where}: {shown(word)} is no setting of a host{near}")
        if key in SLOT_KEYS:
            slots, counted = _number(value, where, written), equals
        elif key in LIMIT_KEYS:
            limit = _number(value, where, written)
        elif key in USER_KEYS:
            user = _checked(value, where, "user")
        else:
            port = _number(value, where, written, PORT_MAX)
    if limit and not counted:
        slots = min(slots, limit)
    if limit and slots > limit:
        raise CommandError(f"{where}: {slots} slots are more than max_slots, which is {limit}")
    return _Mention(Host(canonical_name(name, here), slots, limit, user, port), bool(counted))


def _login(text: str, where: str) -> tuple[str, str]:
    """User and name of `user@name`."""
    user, at, name = text.rpartition("@")
    return _checked(user, where, "user") if at else "", _checked(name, where, "host")


def host_name(name: str, where: str) -> str:
    """A name that a host may have.

    Raises:
        CommandError: it is none; the text begins with `where`.
    """
    return _checked(name, where, "host")


def _checked(name: str, where: str, what: str) -> str:
    if len(name) > NAME_MAX or not _NAME.fullmatch(name):
        text = f"{shown(where)}: {shown(name)!r} is no name of a {what}"
        raise CommandError(f"{text}: letters, digits, '.', '-' and '_' are taken")
    return name


def canonical_name(name: str, here: str) -> str:
    """This host has one name, however it is called."""
    same = name in LOOPBACK_NAMES or name.partition(".")[0] == here or name == here
    return here if same else name


def _number(text: str, where: str, what: str, most: int = RANKS_MAX) -> int:
    value = counted(text)
    if value is None or not 1 <= value <= most:
        raise CommandError(f"{where}: {shown(text)!r} is no number of {what} from 1 to {most}")
    return value


def _only(listed: Sequence[_Mention], named: Sequence[_Mention], where: str) -> list[_Mention]:
    """What is named of what there is: all slots of a host, or as many as the name says."""
    found = []
    known = {mention.host.name: mention for mention in _joined(listed)}
    for mention in _joined(named):
        name = mention.host.name
        if name not in known:
            near = did_you_mean(name, list(known))
            raise CommandError(f"host {name} is not in {where}{near}")
        there = known[name].host
        slots = mention.host.slots if mention.counted else there.slots
        user = mention.host.user or there.user
        found.append(_Mention(there._replace(slots=slots, user=user), counted=True))
    return found


def _joined(mentions: Iterable[_Mention]) -> list[_Mention]:
    """Each host once: slots of several mentions add up."""
    found: dict[str, _Mention] = {}
    for mention in mentions:
        host = mention.host
        if host.name in found:
            before = found[host.name].host
            joined = before._replace(
                slots=before.slots + host.slots,
                max_slots=max(before.max_slots, host.max_slots),
                user=before.user or host.user,
                port=before.port or host.port,
            )
            found[host.name] = _Mention(joined, counted=True)
        else:
            found[host.name] = mention
    return list(found.values())


def _merge(mentions: Sequence[_Mention]) -> Allocation:
    slots = sum(mention.host.slots for mention in mentions)
    if slots > RANKS_MAX:
        raise CommandError(f"the hosts have {slots} slots in all; a job has {RANKS_MAX} at most")
    names = [mention.host.name for mention in mentions for _ in range(mention.host.slots)]
    return Allocation(tuple(mention.host for mention in _joined(mentions)), tuple(names))
