"""Collectives: broadcast, scatter, gather, gather_all, exchange; each blocking and with a handle.

An address is an offset into the own segment, or, with LOCAL, a contiguous buffer anywhere. With
SINGLE all members give the same offsets, those of all members' segments.

Source: reference gasnet.md 14 (Collectives).
"""

# ruff: noqa: SLF001 - teams and handles are private to users, not to this package

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any, Final

from ompy.gasnet.collective.coll_algorithms import NOTHING
from ompy.gasnet.collective.coll_calls import (
    ALIKE,
    NOWHERE,
    Call,
    CollFlag,
    Kind,
    check_flags,
    check_size,
    refuse_aggregate,
)
from ompy.gasnet.collective.coll_engine import CollectiveEngine
from ompy.gasnet.collective.coll_operation import Operation, place_in
from ompy.gasnet.collective.teams import TEAM_ALL, AllRanks, Team
from ompy.gasnet.errors import BadArgument, CollectiveMismatch
from ompy.gasnet.rank import FindConduit, check_integers, readable_bytes, writable_bytes

# kind: whether dst and src have a block of each member; whether the root alone has one
SHAPES: Final = {
    Kind.BROADCAST: ((False, False), (False, True)),
    Kind.SCATTER: ((False, False), (True, True)),
    Kind.GATHER: ((True, True), (False, False)),
    Kind.GATHER_ALL: ((True, False), (False, False)),
    Kind.EXCHANGE: ((True, False), (True, False)),
}


class CollHandle:
    """A collective under way; give it to `coll_wait_sync` or its like, once.

    Attributes:
        complete: this rank's part of it is.
    """

    __slots__ = ("_ops", "_rank")

    def __init__(self, rank: Collectives | None = None, ops: Sequence[Operation] = ()) -> None:
        """Of the last of `ops`, which has the others with it: `COLL_AGGREGATE`."""
        self._rank = rank
        self._ops = ops

    @property
    def complete(self) -> bool:
        """Whether this rank's part of it is."""
        return all(op.complete for op in self._ops)

    def _use_up(self) -> Sequence[Operation]:
        ops, self._ops = self._ops, ()
        self._rank = None
        return ops

    def __repr__(self) -> str:
        if self is COLL_INVALID_HANDLE:
            return "COLL_INVALID_HANDLE"
        state = "synced" if self._rank is None else "complete" if self.complete else "under way"
        return f"<collective handle, {state}>"


# of what is over; it may be synced any number of times
COLL_INVALID_HANDLE: Final = CollHandle()
CollHandles = MutableSequence[CollHandle]


class Collectives(CollectiveEngine):
    """The calls that move data, and what ends them."""

    def __init__(self, find: FindConduit) -> None:
        super().__init__(find)
        self._coll_ready = False
        self._aggregated: list[Operation] = []

    def coll_init(self, images: Sequence[int] | None = None) -> None:
        """Have collectives, from here on; all ranks call it after `attach`.

        Args:
            images: threads of each rank that take part, by rank: one of each. None says so too.

        Raises:
            BadArgument: it was called already, or there are other images.
        """
        self._check_free()
        if self._coll_ready:
            raise BadArgument("coll_init was called already")
        if images is not None and list(images) != [1] * len(self._infos):
            raise BadArgument(f"a rank has one image here: {list(images)} is not one of each")
        self._coll_ready = True

    # --- one to all

    def coll_broadcast(
        self, team: Team | AllRanks, dst: Any, srcimage: int, src: Any, nbytes: int, flags: int
    ) -> None:
        """Copy a block of one member to all, itself among them.

        Args:
            team: whose members all call it.
            dst: where the block goes, of `nbytes`.
            srcimage: rank in the team whose block it is.
            src: the block; only that member's is looked at.
            nbytes: of it.
            flags: of `CollFlag`: one that begins with IN, one with OUT, and SINGLE or LOCAL. With
                AGGREGATE a call that has a handle returns COLL_INVALID_HANDLE, and the next one
                without it has both.

        Raises:
            BadArgument: an argument is wrong, or this thread may not communicate now.
            CollectiveMismatch: members make different calls.
            ResourceError: a peer is gone.
        """
        refuse_aggregate(flags)
        self.coll_wait_sync(self.coll_broadcast_nb(team, dst, srcimage, src, nbytes, flags))

    def coll_broadcast_nb(
        self, team: Team | AllRanks, dst: Any, srcimage: int, src: Any, nbytes: int, flags: int
    ) -> CollHandle:
        """Begin to; with a handle. Raises as `coll_broadcast`."""
        return self._collective(Kind.BROADCAST, team, dst, srcimage, src, nbytes, flags)

    def coll_scatter(
        self, team: Team | AllRanks, dst: Any, srcimage: int, src: Any, nbytes: int, flags: int
    ) -> None:
        """Give each member its block of one member's, which has them by rank in one piece.

        As `coll_broadcast`, but `src` has `nbytes` for each member.
        """
        refuse_aggregate(flags)
        self.coll_wait_sync(self.coll_scatter_nb(team, dst, srcimage, src, nbytes, flags))

    def coll_scatter_nb(
        self, team: Team | AllRanks, dst: Any, srcimage: int, src: Any, nbytes: int, flags: int
    ) -> CollHandle:
        """Begin to; with a handle. Raises as `coll_broadcast`."""
        return self._collective(Kind.SCATTER, team, dst, srcimage, src, nbytes, flags)

    # --- all to one

    def coll_gather(
        self, team: Team | AllRanks, dstimage: int, dst: Any, src: Any, nbytes: int, flags: int
    ) -> None:
        """Have one member get a block of each, by rank in one piece.

        As `coll_broadcast`; `dst` has `nbytes` for each member, and only that of `dstimage` is
        looked at.
        """
        refuse_aggregate(flags)
        self.coll_wait_sync(self.coll_gather_nb(team, dstimage, dst, src, nbytes, flags))

    def coll_gather_nb(
        self, team: Team | AllRanks, dstimage: int, dst: Any, src: Any, nbytes: int, flags: int
    ) -> CollHandle:
        """Begin to; with a handle. Raises as `coll_broadcast`."""
        return self._collective(Kind.GATHER, team, dst, dstimage, src, nbytes, flags)

    # --- all to all

    def coll_gather_all(
        self, team: Team | AllRanks, dst: Any, src: Any, nbytes: int, flags: int
    ) -> None:
        """Have all get a block of each, by rank in one piece. As `coll_gather`, without a root."""
        refuse_aggregate(flags)
        self.coll_wait_sync(self.coll_gather_all_nb(team, dst, src, nbytes, flags))

    def coll_gather_all_nb(
        self, team: Team | AllRanks, dst: Any, src: Any, nbytes: int, flags: int
    ) -> CollHandle:
        """Begin to; with a handle. Raises as `coll_broadcast`."""
        return self._collective(Kind.GATHER_ALL, team, dst, 0, src, nbytes, flags)

    def coll_exchange(
        self, team: Team | AllRanks, dst: Any, src: Any, nbytes: int, flags: int
    ) -> None:
        """Have each member send a block to each: `src` and `dst` have one for each, by rank."""
        refuse_aggregate(flags)
        self.coll_wait_sync(self.coll_exchange_nb(team, dst, src, nbytes, flags))

    def coll_exchange_nb(
        self, team: Team | AllRanks, dst: Any, src: Any, nbytes: int, flags: int
    ) -> CollHandle:
        """Begin to; with a handle. Raises as `coll_broadcast`."""
        return self._collective(Kind.EXCHANGE, team, dst, 0, src, nbytes, flags)

    # --- what ends them

    def coll_wait_sync(self, handle: CollHandle) -> None:
        """Wait for a collective; the handle is used up.

        Raises:
            BadArgument: it has been synced already or is none, or this thread may not wait now.
            CollectiveMismatch, ResourceError: what the collective has ended with.
        """
        self._check_free()
        self._check_coll_handle(handle)
        for op in handle._use_up():
            self._finish_operation(op)

    def coll_try_sync(self, handle: CollHandle) -> bool:
        """Whether it is complete; the handle is used up then. Raises as `coll_wait_sync`."""
        self._check_free()
        self._check_coll_handle(handle)
        self._advance()
        if not handle.complete:
            return False
        for op in handle._use_up():
            self._result(op)
        return True

    def coll_wait_sync_all(self, handles: CollHandles) -> None:
        """Wait for all of these; each place is COLL_INVALID_HANDLE then."""
        self._check_coll_handles(handles)
        for place, handle in enumerate([*handles]):
            self.coll_wait_sync(handle)
            handles[place] = COLL_INVALID_HANDLE

    def coll_wait_sync_some(self, handles: CollHandles) -> list[int]:
        """Wait for one or more. Returns the places of those complete, as `wait_syncnb_some`."""
        self._check_coll_handles(handles)
        real = [handle for handle in handles if handle is not COLL_INVALID_HANDLE]
        if real:
            self._wait_for(lambda: any(handle.complete for handle in real))
        return self._use_up_complete(handles)

    def coll_try_sync_some(self, handles: CollHandles) -> list[int]:
        """The places of those that are complete; each is used up."""
        self._check_coll_handles(handles)
        self._advance()
        return self._use_up_complete(handles)

    def coll_try_sync_all(self, handles: CollHandles) -> bool:
        """Whether all of these are complete; those that are, are used up."""
        self.coll_try_sync_some(handles)
        return all(handle is COLL_INVALID_HANDLE for handle in handles)

    # --- below

    def _advance(self) -> None:
        self._progress()
        self._kick_barrier()

    def _use_up_complete(self, handles: CollHandles) -> list[int]:
        found = [
            place
            for place, handle in enumerate(handles)
            if handle is not COLL_INVALID_HANDLE and handle.complete
        ]
        for place in found:
            ops = handles[place]._use_up()
            handles[place] = COLL_INVALID_HANDLE
            for op in ops:
                self._result(op)
        return found

    def _check_coll_handle(self, handle: CollHandle) -> None:
        if handle.__class__ is not CollHandle:
            raise BadArgument(f"{handle!r} is no handle of a collective")
        if handle is not COLL_INVALID_HANDLE and handle._rank is not self:
            raise BadArgument("the handle has been synced already")

    def _check_coll_handles(self, handles: CollHandles) -> None:
        self._check_free()
        if not isinstance(handles, MutableSequence):
            raise BadArgument(f"{type(handles).__name__} is no list, whose places can be used up")
        for handle in handles:
            self._check_coll_handle(handle)
        real = [id(handle) for handle in handles if handle is not COLL_INVALID_HANDLE]
        if len(set(real)) != len(real):
            raise BadArgument("a handle is there twice: it can be synced once")

    def _team(self, team: Any) -> Team:
        """The team that is meant.

        Raises:
            NotInitialised: before `attach`.
            BadArgument: it is none of this rank's, or this thread may not communicate now.
        """
        self._check_free()
        if not self._coll_ready:
            raise BadArgument("call coll_init first: all ranks do")
        if team is TEAM_ALL:
            return self._teams[0]
        if not isinstance(team, Team) or team.owner is not self:
            raise BadArgument(f"{team!r} is no team of this rank")
        if team.freed:
            raise BadArgument(f"{team} has been freed")
        return team

    def _collective(
        self,
        kind: Kind,
        team: Team | AllRanks,
        dst: Any,
        root: int,
        src: Any,
        nbytes: int,
        flags: int,
    ) -> CollHandle:
        members = self._team(team)
        chosen = check_flags(flags)
        check_size(nbytes)
        check_integers(root)
        if not 0 <= root < members.size:
            raise BadArgument(f"{members} has no image {root}: they are 0 to {members.size - 1}")
        if members.broken is not None:
            raise CollectiveMismatch(members.broken)
        views, hints = [], (CollFlag.DST_IN_SEGMENT, CollFlag.SRC_IN_SEGMENT)
        for address, name, shape, hint in zip(
            (dst, src), ("dst", "src"), SHAPES[kind], hints, strict=True
        ):
            size = nbytes * (members.size if shape[0] else 1)
            users = [root] if shape[1] else list(range(members.size))
            if chosen & CollFlag.SINGLE:
                self._check_single(members, address, size, users, name)
            used = members.rank in users
            hinted = bool(chosen & hint)
            views.append(self._memory_of(address, size, chosen, name, hinted) if used else NOTHING)
        places = (dst, src) if chosen & CollFlag.SINGLE else (NOWHERE, NOWHERE)
        call = Call(kind, int(chosen & ALIKE), root, nbytes, *places)
        self._aggregated.append(self._start(members, call, *views))
        if chosen & CollFlag.AGGREGATE:
            return COLL_INVALID_HANDLE
        ops, self._aggregated = self._aggregated, []
        return CollHandle(self, ops)

    def _check_single(
        self, team: Team, address: Any, size: int, users: Sequence[int], name: str
    ) -> None:
        """See that an offset is good in the segments it is used in."""
        if address.__class__ is not int:
            raise BadArgument(f"with SINGLE {name} is an offset into segments, not {address!r}")
        if address < 0:
            raise BadArgument(f"{name} is the offset {address}, which no segment has")
        for rank in users:
            self._check_range(team.nodes[rank], address, size)

    def _memory_of(
        self, address: Any, size: int, flags: CollFlag, name: str, hinted: bool
    ) -> memoryview:
        """The own memory that an address means."""
        own = self._segment.memory
        if address.__class__ is int:
            self._check_range(self._me, address, size)
            return own[address : address + size]
        if address is None:
            raise BadArgument(f"this rank needs {name}: {size} bytes")
        view = writable_bytes(address) if name == "dst" else readable_bytes(address)
        if len(view) < size:
            raise BadArgument(f"{name} has {len(view)} bytes, not {size}")
        if not size:
            return NOTHING
        view = view[:size]
        if hinted and place_in(own, view) == NOWHERE:
            flag = CollFlag.DST_IN_SEGMENT if name == "dst" else CollFlag.SRC_IN_SEGMENT
            raise BadArgument(f"{name} is not in the segment, as {flag.name} says")
        return view
