"""Communicators between two groups of the job's processes, which need no other to be made."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ompy.data.errors import ERR_COMM
from ompy.frameworks.collectives.leaders import Lead, refuse
from ompy.frameworks.communicator import Communicator
from ompy.mpi.communicators.between import number_below
from ompy.mpi.communicators.communicators import (
    WORLD_ID,
    ranks_of,
    refuse_group_of_world,
    tag_of_text,
    world_from,
    world_of_group,
)
from ompy.mpi.communicators.group import Group
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.integers import whole_number
from ompy.mpi.kinds import check_kind
from ompy.mpi.state import CommState

if TYPE_CHECKING:
    from ompy.mpi.communicators.intercomm import Intercomm


class Given(NamedTuple):
    """The arguments of a `Create_from_groups`, as the user gave them."""

    local_group: Any
    local_leader: Any
    remote_group: Any
    remote_leader: Any
    stringtag: Any
    info: Any
    errhandler: Any


def create(given: Given) -> Intercomm:
    """Make one; only the members of the two groups call this.

    Raises:
        TypeError, ValueError, MPIException: an argument makes no sense; members of both are told.
    """
    from ompy.mpi.communicators.intercomm import Intercomm

    try:
        checked = _checked(given)
        local = None if checked is None else _local(given)
    except Exception as problem:
        _refuse(given, problem)
        raise
    if checked is None or local is None:
        return Intercomm()
    everybody, leader, remote, tag = checked
    made = local.Create_intercomm(leader, Intracomm._adopt(everybody), remote, tag)
    local.Free()
    if given.info:
        made.Set_info(given.info)
    if given.errhandler is not None:
        made.Set_errhandler(given.errhandler)
    return made


def _local(given: Given) -> Intracomm | None:
    """A communicator of this process's group; None where it is in neither."""
    made = Intracomm.Create_from_group(given.local_group, given.stringtag)
    return made if made else None


def _checked(given: Given) -> tuple[CommState, int, int, int] | None:
    """All processes of the job; the leaders, the other one among all of them; and their tag.

    Returns:
        None where this process's group has nobody in it.

    Raises:
        TypeError, ValueError, MPIException: an argument makes no sense; this group is told.
    """
    tag = -1
    try:
        tag = tag_of_text(given.stringtag)
        check_kind(given.local_group, "Group", "local_group")
        check_kind(given.remote_group, "Group", "remote_group")
        check_kind(given.info, "Info", "info")
        if given.errhandler is not None:
            check_kind(given.errhandler, "Errhandler", "errhandler")
        leader, remote = whole_number(given.local_leader), whole_number(given.remote_leader)
        everybody = world_of_group(given.local_group)
        if everybody is None:
            return None
        here = given.local_group.Get_size()
        if not 0 <= leader < here:
            raise everybody.fail(ERR_COMM, f"no local leader {leader} in a group of {here}")
        there = ranks_of(everybody, given.remote_group)
        if not 0 <= remote < len(there):
            raise everybody.fail(ERR_COMM, f"no remote leader {remote} in a group of {len(there)}")
        return everybody, leader, there[remote], _between(tag)
    except Exception:
        refuse_group_of_world(world_from(given.local_group, given.remote_group), tag)
        raise


def _between(tag: int) -> int:
    """The leaders' tag, of that of the groups; as many bits as a tag has."""
    return tag >> 1


def _refuse(given: Given, problem: Exception) -> None:
    """Tell the other group's leader, if this process is one itself, or may be."""
    world = world_from(given.local_group, given.remote_group)
    communicator = world.process.communicators[WORLD_ID]
    here, there = (_ranks(communicator, group) for group in (given.local_group, given.remote_group))
    leader = _at(here, given.local_leader)
    if leader not in {-1, communicator.rank}:
        return  # another one leads, and is told by its group
    try:
        tag = _between(tag_of_text(given.stringtag))
    except (TypeError, ValueError):
        tag = -1
    lead = Lead(communicator, _at(there, given.remote_leader), tag)
    refuse(world.context, lead, problem, surely=leader >= 0 or here == [communicator.rank])


def _ranks(communicator: Communicator, group: Any) -> list[int]:
    """The ranks of a group's processes; none of what is no group."""
    if not isinstance(group, Group) or not group:
        return []
    ranks = {proc: rank for rank, proc in enumerate(communicator.procs)}
    return [ranks.get(proc, -1) for proc in group._state().procs]


def _at(ranks: list[int], place: Any) -> int:
    """The rank at a place that the user has given; -1 where there is none."""
    number = number_below(place, len(ranks))
    return -1 if number < 0 else ranks[number]
