"""mpi4py programs that are drawn, as text, and whose ranks are told what nothing determines.

Each act notes in `told` what it was told: sources, places, how often it asked. At the end a rank
prints that. A replay is right when every line is what it was.
"""

from __future__ import annotations

from random import Random
from typing import Final

BEGIN: Final = '''\
import random
import threading
import time
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
me, size = comm.rank, comm.size
left, right = (me - 1) % size, (me + 1) % size
told = []
chance = random.SystemRandom()


def pause():
    """Be late, or not: nothing else hangs on it."""
    if chance.random() < 0.5:
        time.sleep(chance.uniform(0, 0.003))


def pattern(rank, turn, count):
    """The bytes that a rank sends in a turn."""
    return bytes([(rank * 31 + turn * 7) % 251]) * count


def together(work, number):
    """What each of so many threads notes."""
    notes = [[] for _ in range(number)]
    threads = [threading.Thread(target=work, args=(place, notes[place])) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return notes

'''
END: Final = """
comm.Barrier()
print(f"rank {me} was told {told}", flush=True)
"""

ACTS: Final = {
    "received from anybody": """\
if me == root:
    for _ in range(2 * (size - 1)):
        status, room = MPI.Status(), bytearray(count)
        comm.Recv(room, MPI.ANY_SOURCE, turn, status)
        assert bytes(room) == pattern(status.source, turn, count)
        told.append(status.source)
else:
    for _ in range(2):
        pause()
        comm.Send(pattern(me, turn, count), root, turn)
""",
    "any tag, too": """\
own = comm.Dup()
if me == root:
    for _ in range(2 * (size - 1)):
        status = MPI.Status()
        got = own.recv(source=MPI.ANY_SOURCE, status=status)
        told.append((status.source, status.tag, got))
else:
    for tag in (turn, turn + 1):
        pause()
        own.send((me, tag), root, tag)
own.Free()
""",
    "any tag of one": """\
own = comm.Dup()
requests = [own.isend(tag, right, tag) for tag in (3, 1, 2)]
pause()
told.append([own.recv(source=left, tag=MPI.ANY_TAG) for _ in range(3)])
MPI.Request.Waitall(requests)
own.Free()
""",
    "posted for anybody, told one by one": """\
if me == root:
    rooms = [bytearray(count) for _ in range(size - 1)]
    requests = [comm.Irecv(room, MPI.ANY_SOURCE, turn) for room in rooms]
    for _ in requests:
        status = MPI.Status()
        place = MPI.Request.Waitany(requests, status)
        assert bytes(rooms[place]) == pattern(status.source, turn, count)
        told.append((place, status.source))
    assert MPI.Request.Waitany(requests) == MPI.UNDEFINED
else:
    pause()
    comm.Send(pattern(me, turn, count), root, turn)
""",
    "some of them": """\
requests = [comm.irecv(source=rank, tag=turn) for rank in range(size) if rank != me]
for rank in range(size):
    if rank != me:
        pause()
        comm.send((me, turn), rank, turn)
left_over = len(requests)
while left_over:
    call = MPI.Request.waitsome if turn % 2 else MPI.Request.testsome
    places, got = call(requests)
    told.append((places, got))
    left_over -= len(places or ())
""",
    "tested": """\
pause()
sent = comm.isend(me, right, turn)
request, polls = comm.irecv(source=left, tag=turn), 0
while True:
    flag, got = request.test()
    if flag:
        break
    polls += 1
sent.wait()
told.append((polls, got))
""",
    "tested, any and all": """\
requests = [comm.Isend(pattern(me, turn, count), right, turn)]
requests.append(comm.Irecv(bytearray(count), left, turn))
pause()
seen, polls = [], 0
while len(seen) < 1:
    place, flag = MPI.Request.Testany(requests)
    polls += 1
    if flag:
        seen.append(place)
    told.append(MPI.Request.Get_status_all([one for one in requests if one]))
while not MPI.Request.Testall(requests):
    polls += 1
told.append((polls, seen))
""",
    "looked for": """\
sent = comm.isend((me, turn), right, turn)
status, polls = MPI.Status(), 0
while not comm.iprobe(source=MPI.ANY_SOURCE, tag=turn, status=status):
    polls += 1
told.append((polls, status.source, comm.recv(source=status.source, tag=turn)))
sent.wait()
""",
    "taken": """\
if me == root:
    for _ in range(size - 1):
        polls, message = 0, None
        while message is None:
            message = comm.improbe(source=MPI.ANY_SOURCE, tag=turn)
            polls += 1
        told.append((polls, message.recv()))
else:
    pause()
    comm.send(me, root, turn)
""",
    "probed, taken and received later": """\
if me == root:
    messages = []
    for _ in range(size - 1):
        status = MPI.Status()
        messages.append(comm.Mprobe(MPI.ANY_SOURCE, turn, status))
        told.append((status.source, status.Get_count()))
    for message in reversed(messages):
        room = bytearray(count)
        status = MPI.Status()
        message.Irecv(room).Wait(status)
        assert bytes(room) == pattern(status.source, turn, count)
else:
    pause()
    comm.Send(pattern(me, turn, count), root, turn)
""",
    "probed": """\
if me == root:
    for _ in range(size - 1):
        status = MPI.Status()
        comm.Probe(MPI.ANY_SOURCE, turn, status)
        room = bytearray(status.Get_count())
        comm.Recv(room, status.source, status.tag)
        told.append((status.source, len(room)))
else:
    pause()
    comm.Send(pattern(me, turn, count + me), root, turn)
""",
    "cancelled, or not": """\
sent = comm.Isend(pattern(me, turn, 8), right, turn)
pause()
room, status = bytearray(8), MPI.Status()
request = comm.Irecv(room, left if turn % 2 else MPI.ANY_SOURCE, turn)
pause()
request.Cancel()
request.Wait(status)
told.append(status.Is_cancelled())
if status.Is_cancelled():
    comm.Recv(room, left, turn)
assert bytes(room) == pattern(left, turn, 8)
sent.Wait()
""",
    "the time": """\
began = MPI.Wtime()
pause()
told.append((began, MPI.Wtime() - began))
""",
    "collectives under way": """\
sums, rooms = array("q", [0]), bytearray(count * size)
requests = [comm.Iallreduce(array("q", [me]), sums)]
requests.append(comm.Iallgather(pattern(me, turn, count), rooms))
pause()
requests.append(comm.Ibarrier())
polls = 0
while not MPI.Request.Testall(requests):
    polls += 1
assert sums[0] == size * (size - 1) // 2
assert rooms == b"".join(pattern(rank, turn, count) for rank in range(size))
told.append(polls)
""",
    "who has something for me": """\
draw = random.Random(turn * 100 + me)
targets = draw.sample(range(size), draw.randint(0, size))
requests = [comm.issend((me, turn), rank, turn) for rank in targets]
barrier, heard = None, []
while True:
    status = MPI.Status()
    if comm.iprobe(source=MPI.ANY_SOURCE, tag=turn, status=status):
        heard.append(comm.recv(source=status.source, tag=turn))
    if barrier is None:
        if MPI.Request.testall(requests)[0]:
            barrier = comm.Ibarrier()
    elif barrier.Test():
        break
told.append(heard)
""",
    "persistent, from anybody": """\
if me == root:
    rooms = [bytearray(count) for _ in range(size - 1)]
    requests = [comm.Recv_init(room, MPI.ANY_SOURCE, turn) for room in rooms]
    for _ in range(2):
        MPI.Prequest.Startall(requests)
        for _ in requests:
            status = MPI.Status()
            told.append((MPI.Request.Waitany(requests, status), status.source))
    for request in requests:
        request.Free()
else:
    for _ in range(2):
        pause()
        comm.Send(pattern(me, turn, count), root, turn)
comm.Barrier()
""",
    "work for who asks": """\
if me == root:
    tasks, results, busy = list(range(3 * size)), [], size - 1
    while busy:
        status = MPI.Status()
        result = comm.recv(source=MPI.ANY_SOURCE, tag=turn, status=status)
        results.append((status.source, result))
        busy -= not tasks
        comm.send(tasks.pop() if tasks else None, status.source, turn)
    told.append(results)
else:
    result = None
    while True:
        comm.send(result, root, turn)
        task = comm.recv(source=root, tag=turn)
        if task is None:
            break
        pause()
        result = task * task
        told.append(task)
""",
    "halves": """\
half = comm.Split(me % 2, -me)
if half.rank == 0:
    told.append([half.recv(source=MPI.ANY_SOURCE, tag=turn) for _ in range(half.size - 1)])
else:
    pause()
    half.send(me, 0, turn)
told.append(half.allgather(told[-1] if told else None))
half.Free()
""",
    "duplicated meanwhile": """\
own, request = comm.Idup()
polls = 0
while not request.Test():
    polls += 1
told.append((polls, own.allreduce(me)))
own.Free()
""",
    "between two groups": """\
half = comm.Split(me % 2, me)
between = half.Create_intercomm(0, comm, 1 - me % 2, turn)
pause()
requests = [between.isend(me, rank, turn) for rank in range(between.remote_size)]
told.append([between.recv(source=MPI.ANY_SOURCE, tag=turn) for _ in range(between.remote_size)])
MPI.Request.waitall(requests)
told.append(between.allgather(me))
between.Free()
half.Free()
""",
    "a ring of both ways": """\
room, status = bytearray(count), MPI.Status()
comm.Sendrecv(pattern(me, turn, count), right, turn, room, MPI.ANY_SOURCE, turn, status)
assert bytes(room) == pattern(left, turn, count)
told.append(status.source)
told.append(comm.sendrecv(me, right, turn, source=MPI.ANY_SOURCE, recvtag=turn))
""",
    "too long": """\
comm.Set_errhandler(MPI.ERRORS_RETURN)
if me == root:
    for _ in range(size - 1):
        status, room = MPI.Status(), bytearray(4)
        try:
            comm.Recv(room, MPI.ANY_SOURCE, turn, status)
        except MPI.Exception as problem:
            told.append(("error", problem.Get_error_class() == MPI.ERR_TRUNCATE))
        told.append((status.source, bytes(room)))
else:
    pause()
    comm.Send(pattern(me, turn, 4 * (me + 1)), root, turn)
""",
    "never received": """\
request = comm.irecv(source=MPI.ANY_SOURCE, tag=30000)
told.append(request.test()[0])
request.Cancel()
request.Wait()
""",
    "neighbours": """\
ring = comm.Create_cart([size], periods=[True])
rooms = bytearray(2 * count)
request = ring.Ineighbor_allgather(pattern(me, turn, count), rooms)
polls = 0
while not request.Test():
    polls += 1
assert rooms == pattern(left, turn, count) + pattern(right, turn, count)
told.append(polls)
ring.Free()
""",
    "in parts": """\
room = bytearray(4 * count)
sends = comm.Psend_init(pattern(me, turn, 4 * count), 4, right, turn)
receives = comm.Precv_init(room, 4, left, turn)
MPI.Prequest.Startall([sends, receives])
sends.Pready_range(0, 3)
MPI.Request.Waitall([sends, receives])
assert bytes(room) == pattern(left, turn, 4 * count)
sends.Free()
receives.Free()
""",
    "partition by partition": """\
room, polls = bytearray(4 * count), 0
sends = comm.Psend_init(pattern(me, turn, 4 * count), 4, right, turn)
receives = comm.Precv_init(room, 4, left, turn)
MPI.Prequest.Startall([sends, receives])
for place in (2, 0, 3, 1):
    sends.Pready(place)
    pause()
    while not receives.Parrived(place) and polls < 5000:
        polls += 1
told.append((polls, [receives.Parrived(place) for place in range(4)]))
MPI.Request.Waitall([sends, receives])
assert bytes(room) == pattern(left, turn, 4 * count)
sends.Free()
receives.Free()
""",
    "with gaps": """\
kind = MPI.BYTE.Create_vector(count // 8 + 1, 5, 8).Commit()
data, room = bytearray(pattern(me, turn, count + 8)), bytearray(count + 8)
sent = comm.Isend([data, 1, kind], right, turn)
comm.Recv([room, 1, kind], MPI.ANY_SOURCE, turn)
assert room[:5] == data[:5] or size > 1
told.append(sum(room))
sent.Wait()
kind.Free()
""",
    "who had the lock": """\
memory, mine = array("q", [0] * (8 * size)), array("q", [0])
window = MPI.Win.Create(memory if me == root else None, 8, comm=comm)
for _ in range(4):
    pause()
    window.Lock(root)
    window.Get(mine, root, 0)
    window.Flush(root)
    told.append(mine[0])
    window.Put(array("q", [mine[0] + 1]), root, 0)
    window.Put(array("q", [me]), root, 1 + mine[0])
    window.Unlock(root)
comm.Barrier()
window.Free()
""",
    "a window that is tested": """\
memory = array("q", [-1] * size)
window = MPI.Win.Create(memory if me == root else None, 8, comm=comm)
others = comm.group.Excl([root])
if me == root:
    window.Post(others)
    polls = 0
    while not window.Test():
        polls += 1
    told.append((polls, memory[:]))
else:
    window.Start(comm.group.Incl([root]))
    pause()
    window.Put(array("q", [me]), root, me)
    window.Complete()
window.Free()
""",
    "who was first at a counter": """\
memory, drawn = array("q", [0] * 8), array("q", [0])
window = MPI.Win.Create(memory, 8, comm=comm)
window.Lock_all()
for step in range(5):
    pause()
    window.Fetch_and_op(array("q", [me + 1]), drawn, (root + step) % size, 0, MPI.SUM)
    window.Flush_all()
    told.append(drawn[0])
    pause()
    window.Compare_and_swap(array("q", [me]), array("q", [0]), drawn, root, 1)
    window.Flush(root)
    told.append(drawn[0])
window.Get_accumulate(array("q", [me]), drawn, root, 2, MPI.REPLACE)
window.Flush(root)
told.append(drawn[0])
window.Unlock_all()
told.append(memory[:])
window.Free()
told.append(memory[:])
""",
    "accumulated under fences": """\
number = count // 8 + 1
window = MPI.Win.Allocate(8 * number * size, 8, comm=comm)
memory, got = memoryview(window.tomemory()).cast("q"), array("q", [0] * number)
window.Fence()
for step in range(2):
    for rank in range(size):
        pause()
        window.Put(array("q", [me + step] * number), rank, me * number)
    window.Fence()
    told.append([memory[rank * number] for rank in range(size)])
    window.Fence()
    window.Accumulate(array("q", [me + 1] * number), right, me * number, MPI.SUM)
    window.Fence()
    told.append(sum(memory))
    window.Get(got, left, right * number)
    window.Fence()
    told.append(sum(got))
del memory
window.Free()
""",
    "who replaced it last": """\
number = count // 8 + 1
memory, zeros = array("q", [-1] * number), array("q", [0] * number)
window = MPI.Win.Create(memory, 8, comm=comm)
for step in range(3):
    pause()
    mine, got = array("q", [size * step + me] * number), array("q", [0] * number)
    window.Lock(root, MPI.LOCK_SHARED)
    window.Accumulate(mine, root, 0, MPI.REPLACE)
    pause()
    window.Get_accumulate(zeros, got, root, 0, MPI.NO_OP)
    window.Unlock(root)
    told.append(list(set(got)))
window.Fence()
told.append(list(set(memory)))
window.Fence()
window.Free()
""",
    "started and posted": """\
memory, got = array("q", [-1] * (size + count // 8)), array("q", [0])
window = MPI.Win.Create(memory, 8, comm=comm)
here, there = comm.group.Incl([left]), comm.group.Incl([right])
for step in range(2):
    window.Post(here)
    window.Start(there)
    pause()
    window.Put(array("q", [me + step] * (1 + count // 8)), right, me)
    window.Complete()
    window.Wait()
    told.append(memory[:size])
window.Free()
""",
    "a flag that another one sets": """\
memory = array("q", [0] * (1 + size))
window = MPI.Win.Create(memory, 8, comm=comm)
window.Lock_all()
polls, heard = 0, []
if me == root:
    while memory[0] < size - 1:
        window.Sync()
        comm.iprobe(source=MPI.ANY_SOURCE, tag=30001)
        polls += 1
        heard.append(memory[0])
else:
    pause()
    window.Put(array("q", [me]), root, 1 + me)
    window.Flush(root)
    window.Accumulate(array("q", [1]), root, 0, MPI.SUM)
told.append((polls, heard, memory[:]))
window.Unlock_all()
window.Free()
""",
    "what is beyond a window": """\
got = array("q", [0])
window = MPI.Win.Create_dynamic(comm=comm)
window.Set_errhandler(MPI.ERRORS_RETURN)
window.Lock_all()
for call in (window.Get, window.Put):
    try:
        call(got, right, 64)
        window.Flush(right)
        told.append("went well")
    except MPI.Exception as problem:
        told.append(problem.Get_error_class() == MPI.ERR_RMA_RANGE)
window.Unlock_all()
window.Free()
""",
    "threads that receive": """\
def work(place, note):
    for step in range(3):
        pause()
        if me != root:
            comm.Send(pattern(me, turn + place + step, count), root, turn)
            continue
        status, room = MPI.Status(), bytearray(count)
        comm.Recv(room, MPI.ANY_SOURCE, turn, status)
        note.append((status.source, room[:1]))
told.append(together(work, 2 if me != root else 2 * (size - 1)))
""",
    "threads that send to one place": """\
def work(place, note):
    for step in range(3):
        pause()
        sent = comm.isend((place, step), right, turn)
        pause()
        got = comm.irecv(source=left if place else MPI.ANY_SOURCE, tag=turn)
        pause()
        note.append(got.wait())
        sent.wait()
told.append(together(work, 3))
""",
    "threads that look": """\
def work(place, note):
    for step in range(3):
        pause()
        sent = comm.isend((place, step), right, turn)
        message, polls = None, 0
        while message is None:
            if place == 0:
                message = comm.mprobe(source=MPI.ANY_SOURCE, tag=turn)
            else:
                message = comm.improbe(source=left, tag=turn)
                polls += 1
        note.append((polls, message.recv()))
        while not sent.test()[0]:
            polls += 1
        note.append(polls)
told.append(together(work, 3))
""",
    "a thread that polls until it is told": """\
over, own = threading.Event(), comm.Dup()
def work(place, note):
    if place:
        for step in range(3):
            pause()
            own.Ssend(pattern(me, turn, 8), right, step)
        own.send(None, me, 3)
        over.wait()
        return
    while not over.is_set():
        status = MPI.Status()
        if own.iprobe(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status):
            if status.tag == 3:
                own.recv(source=status.source, tag=3)
            else:
                own.Recv(bytearray(8), status.source, status.tag)
            note.append((status.source, status.tag))
        if len(note) == 4:
            over.set()
        pause()
told.append(together(work, 2)[0])
own.Free()
""",
    "met at a port": """\
if me == root:
    port = MPI.Open_port()
    comm.bcast(port, root)
    for _ in range(size - 1):
        between = MPI.COMM_SELF.Accept(port)
        told.append(between.recv(source=0))
        between.Disconnect()
    MPI.Close_port(port)
else:
    port = comm.bcast(None, root)
    pause()
    between = MPI.COMM_SELF.Connect(port)
    between.send((me, turn), 0)
    between.Disconnect()
""",
    "objects of every rank": """\
told.append(comm.gather((me, turn), root))
told.append(comm.scatter([turn + rank for rank in range(size)] if me == root else None, root))
told.append(comm.alltoall([(me, rank) for rank in range(size)]))
told.append(comm.scan(me))
told.append(comm.reduce([me], root=root))
""",
}
SIZES: Final = (0, 8, 100, 5_000, 70_000)  # bytes: nothing, eager, and with rendezvous


# acts that a rank cannot do without the others
TOGETHER: Final = ("what is beyond a window",)
# acts whose order is recorded with the received bytes only
WITH_DATA: Final = (
    "who was first at a counter", "who replaced it last", "a flag that another one sets",
)  # fmt: skip


def draw_program(random: Random, *, alone: bool) -> str:
    """The source of a program; the same from the same state of `random`.

    Args:
        random: draws it.
        alone: received bytes are recorded, and each rank can be replayed without the others.
    """
    lines = [BEGIN]
    left_out = TOGETHER if alone else WITH_DATA
    acts = [name for name in ACTS if name not in left_out]
    if alone:  # what several threads serve in windows, and when, is not recorded
        word = random.choice(("MPI.Win.", "together("))
        acts = [name for name in acts if word not in ACTS[name]]
    for turn in range(1, random.randint(4, 9)):
        name, count = random.choice(acts), random.choice(SIZES)
        head = f"# {name}\nturn, count = {turn}, {count}\nroot = turn % size"
        lines.append(f"{head}\n{ACTS[name]}")
    return "\n".join([*lines, END])
