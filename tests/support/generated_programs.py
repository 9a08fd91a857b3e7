"""mpi4py programs that are drawn, as text: what a user might write, and each checks what it gets.

A program is a list of *acts* that all ranks go through together. Each is some lines of source that
know `me`, `size`, `turn` and `count`, send what `pattern` gives and look at every byte that comes.
So a byte that is lost, doubled, altered or out of order is an AssertionError of the program, and a
message that does not come is a deadlock, which the world tells of.
"""

from __future__ import annotations

from random import Random
from typing import Final

BEGIN: Final = '''\
import time
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
me, size = comm.rank, comm.size
left, right = (me - 1) % size, (me + 1) % size
STRIPE = bytes(range(251))


def pattern(rank, turn, count):
    """The bytes that a rank sends in a turn."""
    first = (rank * 131 + turn * 17) % 251
    return (STRIPE * (count // 251 + 2))[first : first + count]


def same(got, *wanted):
    """See that every byte is right."""
    got, wanted = bytes(got), b"".join(wanted)
    assert len(got) == len(wanted), f"rank {me}, turn {turn}: {len(got)} bytes, not {len(wanted)}"
    wrong = [i for i in range(len(got)) if got[i] != wanted[i]] if got != wanted else []
    assert not wrong, f"rank {me}, turn {turn}: {len(wrong)} bytes of {count} wrong from {wrong[0]}"

'''
END: Final = "comm.Barrier()\nMPI.Finalize()\n"

ACTS: Final = {
    "ring of Issend": """\
room = bytearray(count)
todo = [comm.Irecv(room, left, turn), comm.Issend(pattern(me, turn, count), right, turn)]
MPI.Request.Waitall(todo)
same(room, pattern(left, turn, count))
""",
    "ring of Isend, received late": """\
room = bytearray(count)
sent = comm.Isend(pattern(me, turn, count), right, turn)
comm.Barrier()
comm.Recv(room, left, turn)
sent.Wait()
same(room, pattern(left, turn, count))
""",
    "both ways": """\
room = bytearray(count)
comm.Sendrecv(pattern(me, turn, count), right, turn, room, left, turn)
same(room, pattern(left, turn, count))
""",
    "many at once": """\
rooms = [bytearray(count) for _ in range(6)]
todo = [comm.Irecv(room, left, turn) for room in rooms]
todo += [comm.Isend(pattern(me, turn + i, count), right, turn) for i in range(6)]
MPI.Request.Waitall(todo)
for i, room in enumerate(rooms):
    same(room, pattern(left, turn + i, count))
""",
    "gathered from anybody": """\
if me:
    comm.Send(pattern(me, turn, count), 0, turn)
else:
    status, heard = MPI.Status(), set()
    for _ in range(size - 1):
        room = bytearray(count)
        comm.Recv(room, MPI.ANY_SOURCE, turn, status)
        same(room, pattern(status.source, turn, count))
        heard.add(status.source)
    assert heard == set(range(1, size)), heard
""",
    "probed first": """\
sent = comm.Isend(pattern(me, turn, count), right, turn)
status = MPI.Status()
message = comm.Mprobe(left, MPI.ANY_TAG, status)
room = bytearray(status.Get_count())
message.Recv(room)
sent.Wait()
same(room, pattern(left, turn, count))
""",
    "tested until there": """\
room = bytearray(count)
todo = [comm.Irecv(room, left, turn), comm.Isend(pattern(me, turn, count), right, turn)]
pause = 0.001
while not MPI.Request.Testall(todo):
    time.sleep(pause)
    pause = min(1.05 * pause, 1)
same(room, pattern(left, turn, count))
""",
    "objects": """\
sent = comm.isend({"from": me, "data": pattern(me, turn, count)}, right, turn)
got = comm.recv(source=left, tag=turn)
sent.wait()
assert got["from"] == left
same(got["data"], pattern(left, turn, count))
""",
    "persistent": """\
data, room = bytearray(count), bytearray(count)
todo = [comm.Send_init(data, right, turn), comm.Recv_init(room, left, turn)]
for i in range(3):
    data[:] = pattern(me, turn + i, count)
    MPI.Prequest.Startall(todo)
    MPI.Request.Waitall(todo)
    same(room, pattern(left, turn + i, count))
for one in todo:
    one.Free()
""",
    "with gaps": """\
kind = MPI.BYTE.Create_vector(count // 8, 5, 8).Commit()
data, room = pattern(me, turn, count), bytearray(count)
comm.Sendrecv([data, 1, kind], right, turn, [room, 1, kind], left, turn)
theirs = pattern(left, turn, count)
for i in range(count // 8):
    same(room[8 * i : 8 * i + 5], theirs[8 * i : 8 * i + 5])
kind.Free()
""",
    "bcast": """\
room = bytearray(pattern(me, turn, count)) if me == turn % size else bytearray(count)
comm.Bcast(room, turn % size)
same(room, pattern(turn % size, turn, count))
""",
    "gather and scatter": """\
rooms = bytearray(count * size) if not me else None
comm.Gather(pattern(me, turn, count), rooms, 0)
room = bytearray(count)
comm.Scatter(rooms, room, 0)
same(room, pattern(me, turn, count))
""",
    "allgather": """\
rooms = bytearray(count * size)
comm.Allgather(pattern(me, turn, count), rooms)
same(rooms, *(pattern(rank, turn, count) for rank in range(size)))
""",
    "alltoall": """\
data, rooms = b"".join(pattern(me, turn + to, count) for to in range(size)), bytearray(count * size)
comm.Alltoall(data, rooms)
same(rooms, *(pattern(rank, turn + me, count) for rank in range(size)))
""",
    "allreduce": """\
mine, sums = array("q", range(me, me + count // 8)), array("q", bytes(count // 8 * 8))
comm.Allreduce(mine, sums)
same(sums, array("q", [size * i + size * (size - 1) // 2 for i in range(count // 8)]))
""",
    "reduce and scan": """\
assert comm.allreduce(me) == size * (size - 1) // 2
assert comm.scan(me) == me * (me + 1) // 2
assert comm.reduce([me], root=turn % size) == (list(range(size)) if me == turn % size else None)
""",
    "nonblocking collectives": """\
room = bytearray(pattern(0, turn, count)) if not me else bytearray(count)
rooms = bytearray(count * size)
todo = [comm.Ibcast(room, 0), comm.Iallgather(pattern(me, turn, count), rooms), comm.Ibarrier()]
MPI.Request.Waitall(todo)
same(room, pattern(0, turn, count))
same(rooms, *(pattern(rank, turn, count) for rank in range(size)))
""",
    "halves": """\
half = comm.Split(me % 2, me)
rooms = bytearray(count * half.size)
half.Allgather(pattern(me, turn, count), rooms)
same(rooms, *(pattern(rank, turn, count) for rank in range(me % 2, size, 2)))
half.Free()
""",
    "puts": """\
memory = bytearray(count)
window = MPI.Win.Create(memory, comm=comm)
window.Fence()
window.Put(pattern(me, turn, count), right)
window.Fence()
same(memory, pattern(left, turn, count))
window.Free()
""",
    "gets under locks": """\
memory, room = bytearray(pattern(me, turn, count)), bytearray(count)
window = MPI.Win.Create(memory, comm=comm)
for rank in (left, right):
    window.Lock(rank, MPI.LOCK_SHARED)
    window.Get(room, rank)
    window.Unlock(rank)
    same(room, pattern(rank, turn, count))
comm.Barrier()
window.Free()
""",
    "accumulates": """\
memory = array("q", bytes(8))
window = MPI.Win.Create(memory, comm=comm)
window.Lock_all()
for rank in range(size):
    window.Accumulate(array("q", [me + turn]), rank)
window.Unlock_all()
comm.Barrier()
window.Lock(me)
assert memory[0] == size * (size - 1) // 2 + size * turn, memory
window.Unlock(me)
window.Free()
""",
}
# bytes: nothing, around eager limits and fragments of the transports, and some of each
SIZES: Final = (0, 1, 100, 1_400, 1_500, 5_000, 13_000, 30_000, 70_000)
ENOUGH: Final = 150_000  # bytes that a rank sends in all; arbitrary: a world costs about a second


def draw_program(random: Random) -> str:
    """The source of a program; the same from the same state of `random`."""
    lines, room = [BEGIN], ENOUGH
    for turn in range(1, random.randint(3, 7)):
        name = random.choice(list(ACTS))
        count = random.choice([size for size in SIZES if 4 * size <= room])
        room -= 4 * count
        lines.append(f"# {name}\nturn, count = {turn}, {count}\n{ACTS[name]}")
    return "\n".join([*lines, END])
