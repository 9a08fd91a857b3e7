"""Random messages whose requests are freed, cancelled, asked or too short, and those after them.

What follows an odd end has to be right: the messages after it, and memory that nobody may write.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Final

import numpy as np
from ompy import MPI

from tests.support.differential.calls import SIZES
from tests.support.differential.layouts import UNITS
from tests.support.differential.memory import Memory, one_block
from tests.support.differential.program import GUARD, Program, WrongData, some

SCENES: Final = 12  # of a program, at most
TAGS: Final = 10  # of a scene
PATIENCE_S: Final = 60.0  # until what was freed has to be there
BUFFER: Final = 1 << 24  # bytes
LARGE: Final = (262144, 1 << 20)


class Scene:
    """One message from a rank to another, and one after it.

    Attributes:
        comm: it has for itself.
        source: rank.
        target: rank, another one.
        tag: of the message; the one after it has the next.
        unit: basic type.
        units: elements.
    """

    def __init__(self, program: Program, comm: Any, number: int) -> None:
        chance = program.chance
        self.program, self.comm, self.number = program, comm, number
        self.source = chance.randrange(program.size)
        self.target = (self.source + chance.randrange(1, program.size)) % program.size
        self.tag = number * TAGS
        self.unit = chance.choice(list(UNITS))
        size = chance.choice(LARGE if some(chance, 0.1) else SIZES)
        self.units = size // UNITS[self.unit]
        self.sends, self.receives = self.source == program.me, self.target == program.me
        self.what = f"scene {number}, {self.units} {self.unit} from {self.source} to {self.target}"

    def data(self, part: int) -> Any:
        """Bytes of a message."""
        return self.program.given(self.number, 0, self.source, part, self.units * UNITS[self.unit])

    def sent(self, part: int = 0) -> Memory:
        """Memory with a message in it."""
        memory = one_block(self.program.own, self.unit, self.units, into=False)
        memory.fill(0, self.data(part))
        memory.lend()
        return memory

    def room(self, part: int = 0) -> Memory:
        """Memory for a message, which is expected in it."""
        memory = one_block(self.program.own, self.unit, self.units, into=True)
        memory.clear()
        memory.lend()
        memory.expect(0, self.data(part))
        return memory

    def check(self, memory: Memory, what: str) -> None:
        """Judge memory."""
        memory.check(self.program.judge, f"{self.what}: {what}")

    def require(self, got: Any, want: Any, what: str) -> None:
        """Judge what is said."""
        self.program.judge.require(got, want, f"{self.what}: {what}")

    def one_more(self, part: int = 1) -> None:
        """The message after it."""
        if self.sends:
            memory = self.sent(part)
            self.comm.Send(memory.argument(), self.target, self.tag + part)
            self.check(memory, "sent after it")
        if self.receives:
            memory = self.room(part)
            self.comm.Recv(memory.argument(), self.source, self.tag + part)
            self.check(memory, "the message after it")


def freed_send(scene: Scene) -> None:
    """The message is on its way, and nobody will ask for it."""
    own = scene.program.own
    if scene.sends:
        memory = scene.sent()
        name = own.choice(("Isend", "Issend", "Ibsend", "Send_init", "Ssend_init"))
        request = getattr(scene.comm, name)(memory.argument(), scene.target, scene.tag)
        if name.endswith("init"):
            request.Start()
        request.Free()
        scene.require(request == MPI.REQUEST_NULL, True, "null when freed")
    scene.one_more()
    if scene.receives:
        room = scene.room()
        scene.comm.Recv(room.argument(), scene.source, scene.tag)
        scene.check(room, "of a freed send")
        scene.comm.Ssend(bytearray(1), scene.source, scene.tag + 2)
    if scene.sends:
        scene.comm.Recv(bytearray(1), scene.target, scene.tag + 2)
        scene.check(memory, "memory of a freed send")


def freed_receive(scene: Scene) -> None:
    """What comes is stored, and nobody is told when."""
    if scene.receives:
        room = scene.room()
        name = scene.program.own.choice(("Irecv", "Recv_init"))
        request = getattr(scene.comm, name)(room.argument(), scene.source, scene.tag)
        if name.endswith("init"):
            request.Start()
        request.Free()
    if scene.sends:
        memory = scene.sent()
        scene.comm.Send(memory.argument(), scene.target, scene.tag)
    scene.one_more()
    if scene.receives:
        until = monotonic() + PATIENCE_S
        while not np.array_equal(room.whole, room.want) and monotonic() < until:
            scene.comm.Iprobe(scene.source, scene.tag)
        scene.check(room, "of a freed receive")


def cancelled_receive(scene: Scene) -> None:
    """It gets the message, or leaves it to the next one."""
    own, comm = scene.program.own, scene.comm
    if scene.sends and some(own, 0.5):
        comm.Barrier()  # the receive is cancelled already
    elif scene.sends:
        pending = comm.Isend(scene.sent().argument(), scene.target, scene.tag)
        comm.Barrier()
        pending.Wait()
        scene.one_more()
        return
    if scene.receives:
        room, status = scene.room(), MPI.Status()
        name = own.choice(("Irecv", "Recv_init"))
        request = getattr(comm, name)(room.argument(), scene.source, scene.tag)
        if name.endswith("init"):
            request.Start()
        request.Cancel()
        request.Wait(status)
        if status.Is_cancelled():
            scene.require(bool((room.whole == GUARD).all()), True, "cancelled, and nothing stored")
            if name.endswith("init") and some(own, 0.5):
                request.Start()
            else:
                request = comm.Irecv(room.argument(), scene.source, scene.tag)
        comm.Barrier()
        if status.Is_cancelled():
            request.Wait()
        scene.check(room, f"cancelled {status.Is_cancelled()}")
    elif not scene.sends:
        comm.Barrier()
    else:
        comm.Send(scene.sent().argument(), scene.target, scene.tag)
    scene.one_more()


def receive_too_little(scene: Scene, memory: Memory, how: str) -> Exception | None:
    """Receive into memory that is too short. Returns the error."""
    comm, status = scene.comm, MPI.Status()
    try:
        if how == "Recv":
            comm.Recv(memory.argument(), scene.source, scene.tag, status)
        elif how == "Mrecv":
            comm.Mprobe(scene.source, scene.tag).Recv(memory.argument(), status)
        else:
            request = comm.Irecv(memory.argument(), scene.source, scene.tag)
            comm.Barrier()
            if how == "Wait":
                request.Wait(status)
            elif how == "Waitall":
                MPI.Request.Waitall([MPI.REQUEST_NULL, request])
            else:
                while not request.Test(status):
                    pass
    except MPI.Exception as problem:
        return problem
    return None


def too_short(scene: Scene) -> None:
    """An error of this one receive; what does not fit is stored nowhere."""
    chance = scene.program.chance
    scene.units = max(scene.units, 2)
    fewer = chance.choice((0, 1, scene.units // 2, scene.units - 1))
    how = chance.choice(("Recv", "Mrecv", "Wait", "Waitall", "Test"))
    early = how not in ("Recv", "Mrecv")
    if scene.receives:
        memory = one_block(scene.program.own, scene.unit, fewer, into=True)
        memory.clear()
        memory.lend()
        problem = receive_too_little(scene, memory, how)
        codes = MPI.ERR_TRUNCATE, MPI.ERR_IN_STATUS
        found = problem.Get_error_class() if isinstance(problem, MPI.Exception) else None
        scene.require(found in codes, True, f"{how} of {fewer}: {problem}")
        stored = memory.places[0]
        memory.want[stored] = memory.whole[stored]
        scene.check(memory, f"{how} of {fewer} elements, too few: around them")
    elif early:
        scene.comm.Barrier()
    if scene.sends:
        memory = scene.sent()
        scene.comm.Send(memory.argument(), scene.target, scene.tag)
        scene.check(memory, "sent to one that is too short")
    scene.one_more()


def ready_send(scene: Scene) -> None:
    """The receive is there before."""
    comm = scene.comm
    if scene.receives:
        room = scene.room()
        request = comm.Irecv(room.argument(), scene.source, scene.tag)
        comm.Send(bytearray(1), scene.source, scene.tag + 3)
        request.Wait()
        scene.check(room, "ready")
    if scene.sends:
        memory = scene.sent()
        comm.Recv(bytearray(1), scene.target, scene.tag + 3)
        name = scene.program.own.choice(("Rsend", "Irsend", "Rsend_init"))
        request = getattr(comm, name)(memory.argument(), scene.target, scene.tag)
        if name == "Rsend_init":
            request.Start()
        if request is not None:
            request.Wait()
        scene.check(memory, name)
    scene.one_more()


def asked_only(scene: Scene) -> None:
    """Asking for a status completes nothing."""
    comm, own = scene.comm, scene.program.own
    if scene.sends:
        comm.Ssend(scene.sent().argument(), scene.target, scene.tag)
    if scene.receives:
        room, status = scene.room(), MPI.Status()
        request = comm.Irecv(room.argument(), scene.source, scene.tag)
        while not request.Get_status(status):
            pass
        size = scene.units * UNITS[scene.unit]
        for _ in range(2):
            got = (status.Get_source(), status.Get_tag(), status.Get_count(MPI.BYTE))
            scene.require(got, (scene.source, scene.tag, size), "status")
            scene.require(request == MPI.REQUEST_NULL, False, "asked only")
            status = MPI.Status()
            if some(own, 0.5):
                request.Get_status(status)
            else:
                MPI.Request.Get_status_all([request], [status])
        scene.check(room, "asked only")
        request.Wait()
    scene.one_more()


def to_nobody(scene: Scene) -> None:
    """Calls to no process are complete, and touch nothing."""
    comm, own, nobody = scene.comm, scene.program.own, MPI.PROC_NULL
    memory, status = scene.sent(), MPI.Status()
    comm.Send(memory.argument(), nobody, scene.tag)
    requests = [getattr(comm, name)(memory.argument(), nobody) for name in ("Isend", "Issend")]
    room = one_block(own, scene.unit, scene.units, into=True)
    room.clear()
    room.lend()
    comm.Recv(room.argument(), nobody, scene.tag, status)
    said = status.Get_source(), status.Get_tag(), status.Get_count(MPI.BYTE)
    scene.require(said, (nobody, MPI.ANY_TAG, 0), "of nobody")
    matched = comm.Mprobe(nobody, scene.tag)
    matched.Recv(room.argument(), status)
    requests.append(comm.Irecv(room.argument(), nobody))
    MPI.Request.Waitall(requests)
    scene.require(comm.Iprobe(nobody), True, "probe of nobody")
    scene.check(room, "received from nobody")
    scene.check(memory, "sent to nobody")
    scene.one_more()


def shifted(scene: Scene) -> None:
    """All send and receive at a time, also in one place."""
    comm, own, chance = scene.comm, scene.program.own, scene.program.chance
    me, size = scene.program.me, scene.program.size
    by, replaces = chance.randrange(size), some(chance, 0.5)
    target, source = (me + by) % size, (me - by) % size
    length = scene.units * UNITS[scene.unit]
    given = [scene.program.given(scene.number, 5, rank, 0, length) for rank in (me, source)]
    room = one_block(own, scene.unit, scene.units, into=True)
    room.clear()
    if replaces:
        room.fill(0, given[0])
    room.lend()
    room.expect(0, given[1])
    where = {"dest": target, "sendtag": scene.tag, "source": source, "recvtag": scene.tag}
    waits = some(own, 0.5)
    if replaces:
        call = comm.Sendrecv_replace if waits else comm.Isendrecv_replace
        request = call(room.argument(), **where)
    else:
        memory = one_block(own, scene.unit, scene.units, into=False)
        memory.fill(0, given[0])
        memory.lend()
        call = comm.Sendrecv if waits else comm.Isendrecv
        request = call(memory.argument(), recvbuf=room.argument(), **where)
    if not waits:
        request.Wait()
    scene.check(room, f"shifted by {by}, {replaces=}")
    scene.one_more()


def with_own_requests(scene: Scene) -> None:
    """Requests of the program's own complete beside others."""
    told: list[str] = []

    def query(status: Any, *arguments: Any) -> None:
        status.Set_elements(MPI.BYTE, 7)
        status.Set_cancelled(False)

    own = MPI.Grequest.Start(query, lambda *a: told.append("free"), lambda *a: None)
    if scene.sends:
        scene.comm.Isend(scene.sent().argument(), scene.target, scene.tag).Wait()
    statuses = [MPI.Status(), MPI.Status()]
    if scene.receives:
        room = scene.room()
        request = scene.comm.Irecv(room.argument(), scene.source, scene.tag)
        scene.require(own.Test(), False, "its own request")
        own.Complete()
        MPI.Request.Waitall([own, request], statuses)
        scene.check(room, "beside a request of its own")
    else:
        own.Complete()
        own.Wait(statuses[0])
    scene.require(statuses[0].Get_count(MPI.BYTE), 7, "elements of its own request")
    scene.require(told, ["free"], "freed when complete")
    scene.one_more()


KINDS: Final[tuple[Callable[[Scene], None], ...]] = (
    *(freed_send, freed_receive, cancelled_receive, too_short, ready_send, asked_only),
    *(to_nobody, shifted, with_own_requests),
)


def run(program: Program) -> None:
    """Some scenes, one after the other, or all at a time."""
    if program.size == 1:
        return run_alone(program)
    comm = program.comm.Dup()
    comm.Attach_buffer(bytearray(BUFFER))
    for number in range(program.chance.randint(1, SCENES)):
        program.chance.choice(KINDS)(Scene(program, comm, number))
    comm.Detach_buffer()
    comm.Free()
    return None


def run_alone(program: Program) -> None:
    """A message of a rank to itself."""
    comm = program.comm.Dup()
    data = program.given(0, 0, 0, 0, 100)
    room = np.zeros(100, np.uint8)
    request = comm.Irecv(room, 0)
    comm.Isend(data, 0).Free()
    if not request.Wait():
        raise WrongData("it was cancelled")
    program.judge.compare(room, data, "of itself")
    comm.Free()
