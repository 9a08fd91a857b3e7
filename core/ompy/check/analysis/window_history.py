"""What each member has done in a window: its accesses, when each was complete, what it met.

A record is gone through once. An access is open until a synchronization of its rank closes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ompy.check.logs import Record

Ranges = tuple[tuple[int, int], ...]
NOCHECK: Final = 1  # MODE_NOCHECK
EXCLUSIVE: Final = 1  # LOCK_EXCLUSIVE
LOCAL: Final = frozenset({"load", "store"})
SHARING: Final = "Allocate_shared"
WRITING: Final = frozenset({"put", "acc", "store"})


class Section(NamedTuple):
    """What a lock protects, from `Lock` to `Unlock`.

    Attributes:
        exclusive: nobody else has such a section meanwhile.
        since: entry that began it.
    """

    exclusive: bool
    since: int


class Access:
    """One access of a rank to a member's part of a window.

    Attributes:
        rank: of the job, and `index` of the entry in its record.
        site, call: the line of the program.
        key: of the window; `target` is a rank in it.
        what: put, get, acc, load or store.
        op: of an accumulate: its name, a slash, the basic type; of a load poll: it is in a loop,
            which may wait for a change.
        ranges: bytes of the target's part, in order.
        start: entry from which on it may happen.
        done: entry at which it is complete; None if it never was.
        section: of the lock that its rank had; None for none.
        passive: its rank had a lock.
        fence: how many fences its rank had passed, if it is in an epoch of fences; else -1.
        request: by which it may be complete; 0 for none.
    """

    __slots__ = (
        "call", "done", "fence", "index", "key", "op", "passive", "ranges", "rank", "request",
        "section", "site", "start", "target", "what",
    )  # fmt: skip

    def __init__(self, rank: int, index: int, event: tuple[Any, ...], key: str, fence: int) -> None:
        self.rank = rank
        self.index = self.start = index
        self.site, self.call, _, self.what, self.target, ranges, self.op, self.request = event[1:]
        self.key = key
        self.ranges: Ranges = tuple(sorted((low, high) for low, high in ranges))
        self.done: int | None = None
        self.section: Section | None = None
        self.passive = False
        self.fence = fence

    @property
    def local(self) -> bool:
        """Whether it is a load or a store, by the memory's owner or by who shares it."""
        return self.what in LOCAL

    @property
    def writes(self) -> bool:
        """Whether it changes the memory."""
        return self.what in WRITING and not self.op.startswith("NO_OP")


class Meeting(NamedTuple):
    """What comes behind each of `after` is behind each of `before`: (rank of the job, entry)."""

    before: tuple[tuple[int, int], ...]
    after: tuple[tuple[int, int], ...]


class Member:
    """One member's state in a window, while its record is gone through."""

    def __init__(self, key: str, rank: int, shared: bool = False) -> None:
        self.key = key
        self.rank = rank
        self.shared = shared
        self.open: list[Access] = []
        self.sections: dict[int, Section] = {}
        self.locked_all = False
        self.started: list[int] = []
        self.posted: list[int] = []
        self.fences = 0
        self.fenced = False
        self.exposed_since = -1  # entry that began the exposure epoch


class History:
    """All that was done in the windows of a job.

    Attributes:
        accesses: by window and target.
        calls: entries of synchronization by window and rank of the job: (index, call, targets).
        modes: assertions of fences, by window, rank in it, and how-manieth.
        ranks: of the job, by window and rank in it.
        uncertain: windows of which not all that members do is known.
        shared: windows whose memory members share: they may wait for what others store.
    """

    def __init__(self) -> None:
        self.accesses: dict[tuple[str, int], list[Access]] = defaultdict(list)
        self.calls: dict[tuple[str, int], list[tuple[int, str, list[int]]]] = defaultdict(list)
        self.modes: dict[tuple[str, int, int], tuple[int, int, str]] = {}
        self.ranks: dict[tuple[str, int], int] = {}
        self.uncertain: set[str] = set()
        self.shared: set[str] = set()
        self._fences: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        # by window, target and origin
        self._told: dict[tuple[str, str, int, int], list[tuple[int, int]]] = defaultdict(list)

    def read_record(self, record: Record) -> None:
        """Take a rank's record in."""
        members: dict[int, Member] = {}
        for index, event in enumerate(record.events):
            name = event[0]
            if name == "win":
                self._made(record, members, event)
            elif name == "rma" and event[3] in members:
                self._access(record.rank, index, event, members[event[3]])
            elif name == "sync" and event[3] in members:
                self._sync(record.rank, index, event, members[event[3]])
            elif name == "wait":
                done = set(event[4])
                for member in members.values():
                    _close(member, index, lambda access, done=done: access.request in done)
        if not record.complete:
            self._drop_open(members.values())

    def _made(self, record: Record, members: dict[int, Member], event: tuple[Any, ...]) -> None:
        _, _, call, number, key, comm, rank = event
        if not key:
            return
        members[number] = Member(key, rank, call.endswith(SHARING))
        if members[number].shared:
            self.shared.add(key)
        self.ranks[key, rank] = record.rank
        known = record.comms.get(comm)
        for place, member in enumerate(known.members if known is not None else ()):
            self.ranks.setdefault((key, place), member)

    def _drop_open(self, members: Iterable[Member]) -> None:
        """The rank has not got to its end: how these would have gone on is not known."""
        for member in members:
            for access in member.open:
                self.accesses[member.key, access.target].remove(access)

    def _access(self, rank: int, index: int, event: tuple[Any, ...], member: Member) -> None:
        if event[6] is None:
            return  # its bytes are not known
        access = Access(rank, index, event, member.key, member.fences if member.fenced else -1)
        access.section = member.sections.get(access.target)
        if access.local and member.shared:  # a lock of any part may be for all of the memory
            held = sorted(member.sections.values(), reverse=True)
            access.section = held[0] if held else None
        access.passive = access.section is not None or member.locked_all
        if not access.local and (access.passive or member.started):
            access.fence = -1
        if not access.local:
            member.open.append(access)
        elif not access.call:
            access.done = index + 1
        elif member.exposed_since < 0:
            return
        else:  # anywhere in the epoch that ends here
            access.done = member.exposed_since + 1
        self.accesses[member.key, access.target].append(access)

    def _sync(self, rank: int, index: int, event: tuple[Any, ...], member: Member) -> None:
        _, _, call, _, what, targets, mode = event
        self.calls[member.key, rank].append((index, what, targets))
        match what:
            case "fence":
                _close(member, index, _any)
                member.fences += 1
                member.fenced = True
                member.exposed_since = index + 1  # behind it comes the collective call
                self._fences[member.key, member.fences].append((rank, index))
                self.modes[member.key, member.rank, member.fences] = (mode, event[1], call)
            case "lock":
                exclusive = mode & 0xFF == EXCLUSIVE and not mode >> 8 & NOCHECK
                member.sections[targets[0]] = Section(exclusive, index)
            case "unlock":
                _close(member, index, lambda access: access.target == targets[0])
                member.sections.pop(targets[0], None)
            case "lock_all":
                member.locked_all = True
            case "unlock_all":
                _close(member, index, _any)
                member.locked_all = False
            case "flush":
                _close(member, index, lambda access: not targets or access.target in targets)
            case "flush_local":
                _close(
                    member,
                    index,
                    lambda access: (
                        access.what == "get" and (not targets or access.target in targets)
                    ),
                )
            case "free":
                _close(member, index, _any)
            case "shared":
                self.shared.add(member.key)
            case _:
                self._general(rank, index, what, list(targets), member)

    def _general(
        self, rank: int, index: int, what: str, targets: list[int], member: Member
    ) -> None:
        """Start, Complete, Post and Wait."""
        key, own = member.key, member.rank
        if what == "start":
            member.started, member.fenced = targets, False
            for target in targets:
                self._told[key, "start", target, own].append((rank, index))
        elif what == "complete":
            _close(member, index, lambda access: access.target in member.started)
            for target in member.started:
                self._told[key, "complete", target, own].append((rank, index))
            member.started = []
        elif what == "post":
            member.posted, member.fenced = targets, False
            member.exposed_since = index
            for origin in targets:
                self._told[key, "post", own, origin].append((rank, index))
        elif what == "wait":
            member.exposed_since = -1
            for origin in member.posted:
                self._told[key, "wait", own, origin].append((rank, index))
            member.posted = []

    def meetings(self) -> list[Meeting]:
        """What the synchronization of windows orders."""
        found = [Meeting(tuple(all_), tuple(all_)) for all_ in self._fences.values()]
        for (key, what, target, origin), entries in self._told.items():
            later = {"post": "start", "complete": "wait"}.get(what)
            if later is not None:
                others = self._told.get((key, later, target, origin), [])
                pairs = zip(entries, others, strict=False)
                found += [Meeting((one,), (other,)) for one, other in pairs]
        return found


def _any(_access: Access) -> bool:
    return True


def _close(member: Member, index: int, closes: Any) -> None:
    """Some open accesses are complete."""
    left = []
    for access in member.open:
        if closes(access):
            access.done = index
        else:
            left.append(access)
    member.open = left


def history_of(records: Mapping[int, Record]) -> History:
    """What was done in all windows."""
    history = History()
    for record in records.values():
        history.read_record(record)
    for (key, _), rank in history.ranks.items():
        if rank not in records:
            history.uncertain.add(key)
    return history
