"""Programs of one rank each: sessions."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.data.errors import ERR_ARG, ERR_BUFFER, ERR_SESSION
from ompy.mpi.communicators.comm import COMM_NULL
from ompy.mpi.communicators.group import GROUP_EMPTY, Group
from ompy.mpi.communicators.intercomm import Intercomm
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.communicators.predefined_comms import session_of, world_of
from ompy.mpi.constants import BSEND_OVERHEAD
from ompy.mpi.errhandler import ERRORS_RETURN
from ompy.mpi.errors import MPIException
from ompy.mpi.info import Info
from ompy.mpi.processes.sessions import PSETS, SESSION_NULL, Session
from ompy.runtime.ranks.process import RankProcess


def fails(code: int, call: Any, *arguments: Any) -> str:
    with pytest.raises(MPIException) as caught:
        call(*arguments)
    assert caught.value.Get_error_class() == code, caught.value
    return str(caught.value)


def process_sets(process: RankProcess) -> None:
    """Which there are, how many processes they have, and their groups."""
    comm, session = world_of(process), session_of(process)
    names = [session.Get_nth_pset(n) for n in range(session.Get_num_psets())]
    assert tuple(names) == PSETS
    sizes = dict(zip(PSETS, (comm.size, 1, comm.Split_type(0).size), strict=True))
    assert sizes[PSETS[2]] == len(process.context.local_procs())
    for name, size in sizes.items():
        assert session.Get_pset_info(name).Get("mpi_size") == str(size)
        group = session.Create_group(name.upper())
        assert group.Get_size() == size
        assert Group.Create_from_session_pset(session, name).Compare(group) == 0
    assert session.Create_group("mpi://world").Get_rank() == comm.rank
    for wrong in (-1, len(PSETS)):
        fails(ERR_ARG, session.Get_nth_pset, wrong)
    for call in (session.Get_pset_info, session.Create_group):
        assert "mpix://SHARED" in fails(ERR_ARG, call, "app://ocean")
        with pytest.raises(TypeError, match="expecting a str"):
            call(None)


def communicators(process: RankProcess) -> None:
    """Of two sessions at a time, apart from each other, also of a part and between two groups."""
    comm = world_of(process)
    sessions = [session_of(process) for _ in range(2)]
    groups = [each.Create_group("mpi://WORLD") for each in sessions]
    made = [Intracomm.Create_from_group(each, "a") for each in groups]
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sent = [each.isend(place, right) for place, each in enumerate(made)]
    assert [each.recv(source=left) for each in made[::-1]] == [1, 0]
    for request in sent:
        request.wait()
    part = groups[0].Incl(range(0, comm.size, 2))
    some = Intracomm.Create_from_group(part, "b")
    assert (some == COMM_NULL) == bool(comm.rank % 2)
    if some:
        assert some.allgather(comm.rank) == list(range(0, comm.size, 2))
    assert Intracomm.Create_from_group(GROUP_EMPTY) == COMM_NULL
    if comm.size > 1:
        sides = [part, Group.Difference(groups[0], part)]
        own, other = sides if comm.rank % 2 == 0 else sides[::-1]
        inter = Intercomm.Create_from_groups(own, 0, other, 0, "c")
        assert inter.allgather(comm.rank) == list(range(1 - comm.rank % 2, comm.size, 2))
    for each in sessions:
        each.Finalize()
    assert made[0].allreduce(1) == comm.size, "it is there until it is freed"


def ends(process: RankProcess) -> None:
    """A session that is over is an error, in every handle of it."""
    session = session_of(process)
    other = Session(session)
    assert other == session
    assert session.Get_info().Get("thread_level") == "MPI_THREAD_MULTIPLE"
    session.Finalize()
    assert session == SESSION_NULL
    for each in (session, other):
        for call in (each.Get_num_psets, each.Get_info, each.Finalize, each.Flush_buffer):
            fails(ERR_SESSION, call)
    third = session_of(process)
    third.free()
    third.free()
    assert not third


def error_handlers(process: RankProcess) -> None:
    """A session's own handler is called with the session; the communicators have theirs."""
    session, seen = session_of(process), []
    handler = Session.Create_errhandler(lambda which, code: seen.append((which == session, code)))
    session.Set_errhandler(handler)
    fails(ERR_ARG, session.Get_nth_pset, 99)
    session.Call_errhandler(ERR_ARG)
    assert seen == [(True, ERR_ARG)] * 2
    assert session.Get_errhandler() == handler
    group = session.Create_group("mpi://SELF")
    single = Intracomm.Create_from_group(group, "own", Info.Create({"a": "b"}), ERRORS_RETURN)
    assert single.Get_info().Get("a") == "b"
    assert single.Get_errhandler() == ERRORS_RETURN
    assert len(seen) == 2


def buffered(process: RankProcess) -> None:
    """Memory attached to a session serves its communicators, duplicates of them too."""
    comm, session = world_of(process), session_of(process)
    mine = Intracomm.Create_from_group(session.Create_group("mpi://WORLD")).Dup()
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    lent = bytearray(1000 + BSEND_OVERHEAD)
    session.Attach_buffer(lent)
    fails(ERR_BUFFER, session.Attach_buffer, lent)
    fails(ERR_BUFFER, comm.Bsend, bytes(8), right)
    mine.Bsend(bytes(1000), right)
    fails(ERR_BUFFER, mine.Bsend, bytes(1001), right)
    mine.Recv(bytearray(1000), left)
    session.Iflush_buffer().Wait()
    session.Flush_buffer()
    assert session.Detach_buffer() is lent
    assert session.Detach_buffer() is None
    fails(ERR_BUFFER, mine.Bsend, bytes(8), right)


PROGRAMS = (
    "process_sets",
    "communicators",
    "ends",
    "error_handlers",
    "buffered",
)
