"""Programs with windows: wrong ones, each line with `# WRONG` a site of it, and right ones."""

from __future__ import annotations

BEGIN = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
"""
ALLOCATED = (
    BEGIN
    + """
win = MPI.Win.Allocate(64, 8, comm=comm)
mem = np.frombuffer(win.tomemory(), "i8")
"""
)
CREATED = (
    BEGIN
    + """
mem = np.zeros(8)
win = MPI.Win.Create(mem, 8, comm=comm)
"""
)

# ranks, class, program
FAULTY = {
    "two puts to one place in one epoch": (3, "rma-race", ALLOCATED + """
win.Fence()
if rank:
    win.Put(np.full(2, rank), 0, 1)  # WRONG
win.Fence()
win.Free()
"""),
    "put and get of one place in one epoch": (3, "rma-race", CREATED + """
got = np.zeros(4)
win.Fence()
if rank == 1:
    win.Put(np.ones(2), 0, 3)  # WRONG
if rank == 2:
    win.Get(got, 0, 0)  # WRONG
win.Fence()
win.Free()
"""),
    "put beside an accumulate": (3, "rma-race", CREATED + """
win.Fence()
if rank == 1:
    win.Accumulate(np.ones(8), 0)  # WRONG
if rank == 2:
    win.Put(np.ones(1), 0, 7)  # WRONG
win.Fence()
win.Free()
"""),
    "accumulates with different operations": (3, "rma-race", CREATED + """
win.Fence()
if rank == 1:
    win.Accumulate(np.ones(8), 0, op=MPI.SUM)  # WRONG
if rank == 2:
    win.Accumulate(np.ones(8), 0, op=MPI.PROD)  # WRONG
win.Fence()
win.Free()
"""),
    "the owner stores into what is put": (2, "rma-race", CREATED + """
win.Fence()
if rank == 0:
    mem[1:3] = 5.0  # WRONG
else:
    win.Put(np.ones(1), 0, 2)  # WRONG
win.Fence()
win.Free()
"""),
    "the owner reads before the fence": (2, "rma-race", CREATED + """
win.Fence()
if rank == 1:
    win.Put(np.ones(2), 0, 2)  # WRONG
if rank == 0:
    seen = mem[3]  # WRONG
win.Fence()
win.Free()
"""),
    "the owner stores through a function while it is read": (2, "rma-race", CREATED + """
def change(memory):
    view = memory.reshape(2, 4)
    view.__setitem__((1, 1), 9.0)
got = np.zeros(8)
win.Fence()
if rank == 0:
    change(mem)
else:
    win.Get(got, 0)  # WRONG
win.Fence()  # WRONG
win.Free()
"""),
    "one origin puts and gets without a flush": (2, "rma-race", ALLOCATED + """
comm.Barrier()
got = np.zeros(1, "i8")
if rank == 1:
    win.Lock(0)
    win.Put(np.ones(1, "i8"), 0, 4)  # WRONG
    win.Get(got, 0, 4)  # WRONG
    win.Unlock(0)
comm.Barrier()
win.Free()
"""),
    "a lost update under shared locks": (3, "rma-race", ALLOCATED + """
comm.Barrier()
got = np.zeros(1, "i8")
for _ in range(5):
    win.Lock(0, MPI.LOCK_SHARED)
    win.Get(got, 0)
    win.Flush(0)
    more = got + 1
    win.Put(more, 0)  # WRONG
    win.Unlock(0)
comm.Barrier()
win.Free()
"""),
    "no barrier between the owner's stores and a lock of another": (2, "rma-race", ALLOCATED + """
got = np.zeros(4, "i8")
if rank == 0:
    mem[0] = 11  # WRONG
else:
    win.Lock(0, MPI.LOCK_SHARED)
    win.Get(got, 0)  # WRONG
    win.Unlock(0)
comm.Barrier()
win.Free()
"""),
    "the owner reads between post and wait": (2, "rma-race", ALLOCATED + """
group = comm.Get_group()
other = group.Incl([1 - rank])
if rank == 0:
    win.Post(other)
    total = mem.sum()  # WRONG
    win.Wait()
else:
    win.Start(other)
    win.Put(np.ones(2, "i8"), 0)  # WRONG
    win.Complete()
other.Free()
group.Free()
win.Free()
"""),
    "columns that share a row's end": (2, "rma-race", BEGIN + """
mem = np.zeros((4, 4))
win = MPI.Win.Create(mem, 8, comm=comm)
column = MPI.DOUBLE.Create_vector(4, 2, 4).Commit()
mine = np.ones(8)
win.Fence()
win.Put([mine, 8, MPI.DOUBLE], 0, [rank, 1, column])  # WRONG
win.Fence()
column.Free()
win.Free()
"""),
    "a message before the put is complete": (3, "rma-race", ALLOCATED + """
comm.Barrier()
win.Lock_all()
if rank == 1:
    win.Put(np.ones(1, "i8"), 0, 2)  # WRONG
    comm.send("done", 2)
elif rank == 2:
    comm.recv(source=1)
    win.Put(np.ones(1, "i8"), 0, 2)  # WRONG
win.Unlock_all()
comm.Barrier()
win.Free()
"""),
    "put without an epoch": (2, "epoch", CREATED + """
if rank == 0:
    win.Put(np.ones(1), 1)  # WRONG
win.Free()
"""),
    "unlock without lock": (2, "epoch", CREATED + """
if rank == 0:
    win.Unlock(1)  # WRONG
win.Free()
"""),
    "lock with an epoch of fences open": (2, "epoch", CREATED + """
win.Fence()
if rank == 0:
    win.Put(np.ones(1), 1)
    win.Lock(1)  # WRONG
win.Fence()
win.Free()
"""),
    "no fence before the window is freed": (2, "epoch", CREATED + """
win.Fence()
if rank == 0:
    win.Put(np.ones(1), 1)  # WRONG
win.Free()  # WRONG
"""),
    "a lock that is never given back": (2, "epoch", CREATED + """
if rank == 0:
    win.Lock(1)  # WRONG
    win.Put(np.ones(1), 1)
comm.Barrier()
"""),
    "a request outside of a lock": (2, "epoch", CREATED + """
win.Fence()
if rank == 0:
    win.Rput(np.ones(1), 1).Wait()  # WRONG
win.Fence()
win.Free()
"""),
    "a promise that nothing precedes": (2, "epoch", CREATED + """
win.Fence()
if rank == 0:
    win.Put(np.ones(1), 1)  # WRONG
win.Fence(MPI.MODE_NOPRECEDE)  # WRONG
win.Fence()
win.Free()
"""),
    "a promise that nothing is put": (2, "epoch", CREATED + """
win.Fence(MPI.MODE_NOPUT)  # WRONG
if rank == 0:
    win.Put(np.ones(1), 1)  # WRONG
win.Fence()
win.Free()
"""),
    "wait without post": (2, "epoch", CREATED + """
if rank == 0:
    win.Wait()  # WRONG
win.Free()
"""),
    "what is put is changed before the fence": (2, "rma-race", CREATED + """
mine = np.ones(4)
win.Fence()
if rank == 0:
    win.Put(mine, 1)  # WRONG
    memoryview(mine.tobytes())
    part = np.frombuffer(mine.data, "u1")
    mine = [mine]
    try:
        mine[0][0] = 3.0
    except ValueError:
        mine[0].flags.writeable = True
        mine[0][0] = 3.0
win.Fence()
win.Free()
"""),
    "what is got is read before the fence": (2, "rma-race", CREATED + """
got = np.zeros(4)
win.Fence()
if rank == 0:
    win.Get(got, 1)  # WRONG
    seen = got[0] + 1  # WRONG
win.Fence()
win.Free()
"""),
    "halos are read before the fence": (3, "rma-race", BEGIN + """
class Halo:
    def __init__(self, n):
        self.data = np.zeros(n + 2)
        self.win = MPI.Win.Create(self.data, 8, comm=comm)
        self.n = n
    def step(self):
        self.win.Fence()
        if rank > 0:
            self.win.Put([self.data[1:2], 1, MPI.DOUBLE], rank - 1, self.n + 1)
        if rank < size - 1:
            self.win.Put(self.data[self.n:self.n + 1], rank + 1, 0)  # WRONG
        new = 0.5 * (self.data[:-2] + self.data[2:])  # WRONG
        self.win.Fence()
        self.data[1:-1] = new
h = Halo(16)
h.data[1:-1] = rank
for _ in range(20):
    h.step()
h.win.Free()
"""),
}  # fmt: skip

# ranks, program
CORRECT = {
    "puts to places of their own": (3, ALLOCATED + """
for step in range(3):
    win.Fence()
    win.Put(np.full(1, rank), (rank + 1) % size, rank)
    win.Fence()
    assert mem[(rank - 1) % size] == (rank - 1) % size
win.Free()
"""),
    "put and get in epochs of their own": (3, CREATED + """
got = np.zeros(4)
win.Fence()
if rank == 1:
    win.Put(np.ones(2), 0, 2)
win.Fence()
if rank == 2:
    win.Get(got, 0, 0)
win.Fence()
assert rank != 2 or got[2] == 1
win.Free()
"""),
    "accumulates with one operation": (3, CREATED + """
mine = np.ones(8)
win.Fence()
win.Accumulate(mine, 0)
win.Accumulate(mine[:4], 0)
win.Fence()
assert rank or mem[0] == 2 * size
win.Free()
"""),
    "the owner stores beside what is put": (2, CREATED + """
win.Fence()
if rank == 0:
    mem[0:2] = 5.0
    mem[rank + 3] += 1.0
else:
    win.Put(np.ones(1), 0, 2)
win.Fence()
seen = mem[2]
mem[2] = 7.0
win.Fence()
win.Free()
"""),
    "the owner stores before the fence and after it": (2, CREATED + """
mem[:] = rank
win.Fence()
got = np.zeros(8)
win.Get(got, 1 - rank)
win.Fence()
mem[:] = 9.0
win.Fence(MPI.MODE_NOSUCCEED)
assert got[0] == 1 - rank
win.Free()
"""),
    "the owner's accesses under its own exclusive lock": (2, ALLOCATED + """
got = np.zeros(1, "i8")
for step in range(4):
    if rank == 0:
        win.Lock(0)
        mem[0] += 1
        win.Unlock(0)
    else:
        win.Lock(0)
        win.Get(got, 0)
        win.Flush(0)
        more = got + 1
        win.Put(more, 0)
        win.Unlock(0)
comm.Barrier()
assert rank or mem[0] == 8
win.Free()
"""),
    "one origin puts, flushes and gets": (2, ALLOCATED + """
comm.Barrier()
got = np.zeros(1, "i8")
if rank == 1:
    win.Lock(0, MPI.LOCK_SHARED)
    win.Put(np.ones(1, "i8"), 0, 4)
    win.Flush(0)
    win.Get(got, 0, 4)
    win.Unlock(0)
    assert got[0] == 1
comm.Barrier()
win.Free()
"""),
    "updates under exclusive locks": (3, ALLOCATED + """
comm.Barrier()
got = np.zeros(1, "i8")
for _ in range(5):
    win.Lock(0)
    win.Get(got, 0)
    win.Flush(0)
    more = got + 1
    win.Put(more, 0)
    win.Unlock(0)
comm.Barrier()
assert rank or mem[0] == 15
win.Free()
"""),
    "counters under shared locks": (4, ALLOCATED + """
comm.Barrier()
one, got = np.ones(1, "i8"), np.zeros(1, "i8")
win.Lock_all()
for _ in range(5):
    win.Fetch_and_op(one, got, 0, 0, MPI.SUM)
    win.Flush(0)
    win.Fetch_and_op(one, got, 0, 0, MPI.NO_OP)
    win.Accumulate(one, 0, 1)
    win.Flush_all()
win.Unlock_all()
comm.Barrier()
assert rank or (mem[0] == 20 and mem[1] == 20)
win.Free()
"""),
    "a lock of the program's own": (3, ALLOCATED + """
comm.Barrier()
zero, one, old, got = (np.array([n], "i8") for n in (0, 1, 0, 0))
win.Lock_all()
for _ in range(5):
    while True:
        win.Compare_and_swap(one, zero, old, 0, 0)
        win.Flush(0)
        if old[0] == 0:
            break
    win.Get(got, 0, 1)
    win.Flush(0)
    more = got + 1
    win.Put(more, 0, 1)
    win.Flush(0)
    win.Accumulate(zero, 0, 0, op=MPI.REPLACE)
    win.Flush(0)
win.Unlock_all()
comm.Barrier()
assert rank or mem[1] == 15
win.Free()
"""),
    "a flag that the owner waits for": (2, ALLOCATED + """
comm.Barrier()
win.Lock_all()
if rank == 1:
    win.Put(np.full(2, 3, "i8"), 0, 2)
    win.Flush(0)
    win.Accumulate(np.ones(1, "i8"), 0, 0, op=MPI.REPLACE)
    win.Flush(0)
else:
    while mem[0] == 0:
        win.Sync()
    seen = mem[2] + mem[3]
    assert seen == 6
    mem[2] = 0
win.Unlock_all()
comm.Barrier()
win.Free()
"""),
    "post, start, complete and wait": (3, ALLOCATED + """
group = comm.Get_group()
others = group.Excl([0])
first = group.Incl([0])
for step in range(3):
    if rank == 0:
        win.Post(others)
        win.Wait()
        total = mem[1:3].sum()
        mem[1:3] = 0
    else:
        win.Start(first)
        win.Put(np.full(1, rank), 0, rank)
        win.Complete()
for each in (others, first, group):
    each.Free()
win.Free()
"""),
    "a message when the put is complete": (3, ALLOCATED + """
comm.Barrier()
win.Lock_all()
if rank == 1:
    win.Put(np.ones(1, "i8"), 0, 2)
    win.Flush(0)
    comm.send("done", 2)
elif rank == 2:
    comm.recv(source=1)
    win.Put(np.ones(1, "i8"), 0, 2)
    win.Flush(0)
    comm.send("done", 0)
else:
    comm.recv(source=2)
    win.Sync()
    seen = mem[2] + 1
win.Unlock_all()
comm.Barrier()
win.Free()
"""),
    "columns side by side": (2, BEGIN + """
mem = np.zeros((4, 4))
win = MPI.Win.Create(mem, 8, comm=comm)
column = MPI.DOUBLE.Create_vector(4, 2, 4).Commit()
mine = np.ones(8)
win.Fence()
win.Put([mine, 8, MPI.DOUBLE], 0, [2 * rank, 1, column])
win.Fence()
assert rank or mem.sum() == 16
column.Free()
win.Free()
"""),
    "shared memory": (2, BEGIN + """
win = MPI.Win.Allocate_shared(64 if rank == 0 else 0, 8, comm=comm)
part, unit = win.Shared_query(0)
mem = np.frombuffer(part, "i8")
win.Fence()
if rank == 1:
    mem[0] = 3
win.Fence()
assert mem[0] == 3
win.Fence()
win.Free()
"""),
    "requests under a lock": (2, ALLOCATED + """
comm.Barrier()
got = np.zeros(2, "i8")
if rank == 1:
    win.Lock(0)
    win.Rget(got, 0).Wait()
    mine = got + 1
    win.Rput(mine, 0).Wait()
    mine[0] = 5
    win.Unlock(0)
comm.Barrier()
win.Free()
"""),
    "buffers that are used again behind the fence": (2, CREATED + """
mine, got = np.ones(4), np.zeros(4)
for step in range(3):
    mine[:] = step
    win.Fence()
    win.Put(mine, 1 - rank)
    win.Fence()
    mine[0] = 9.0
    win.Get(got, 1 - rank, 0)
    win.Fence()
    assert got[0] == step
win.Free()
"""),
    "halos are read behind the fence": (4, BEGIN + """
class Halo:
    def __init__(self, n):
        self.data = np.zeros(n + 2)
        self.win = MPI.Win.Create(self.data, 8, comm=comm)
        self.n = n
    def exchange(self):
        self.win.Fence()
        if rank > 0:
            self.win.Put([self.data[1:2], 1, MPI.DOUBLE], rank - 1, self.n + 1)
        if rank < size - 1:
            self.win.Put(self.data[self.n:self.n + 1], rank + 1, 0)
        self.win.Fence()
    def step(self):
        new = self.data.copy()
        new[1:-1] = 0.5 * (self.data[:-2] + self.data[2:])
        self.data[1:-1] = new[1:-1]
h = Halo(16)
h.data[1:-1] = rank
for _ in range(20):
    h.exchange()
    h.step()
h.win.Free()
"""),
    "a queue of ranks for a lock": (3, BEGIN + """
lw = MPI.Win.Allocate(24, 8, comm=comm)
lm = np.frombuffer(lw.tomemory(), "i8")
lm[:] = [-1, 0, -1]
data = np.zeros(1, "i8")
dw = MPI.Win.Create(data, 8, comm=comm)
comm.Barrier()
lw.Lock_all(); dw.Lock_all()
one = lambda v: np.array([v], "i8")
def fetch(target, disp, value, op):
    got = one(0)
    lw.Fetch_and_op(one(value), got, target, disp, op)
    lw.Flush(target)
    return int(got[0])
for i in range(4):
    fetch(rank, 2, -1, MPI.REPLACE)
    fetch(rank, 1, 1, MPI.REPLACE)
    prev = fetch(0, 0, rank, MPI.REPLACE)
    if prev != -1:
        fetch(prev, 2, rank, MPI.REPLACE)
        while fetch(rank, 1, 0, MPI.NO_OP):
            pass
    v = one(0)
    dw.Get(v, 0); dw.Flush(0)
    n = v + 1
    dw.Put(n, 0); dw.Flush(0)
    got = one(0)
    lw.Compare_and_swap(one(-1), one(rank), got, 0, 0); lw.Flush(0)
    if got[0] != rank:
        while True:
            nxt = fetch(rank, 2, 0, MPI.NO_OP)
            if nxt != -1:
                break
        fetch(nxt, 1, 0, MPI.REPLACE)
lw.Unlock_all(); dw.Unlock_all()
comm.Barrier()
assert rank or data[0] == 4 * size, data
lw.Free(); dw.Free()
"""),
}  # fmt: skip
