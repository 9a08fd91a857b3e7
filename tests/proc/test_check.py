"""`ompy-run --check` on real ranks: what it finds, what it leaves alone, and how it tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc
BIN: Final = Path(sys.executable).parent
FOUND: Final = 5
PATIENCE: Final = 60  # s; arbitrary, far beyond what any program takes
HEAD: Final = """\
from array import array
from mpi4py import MPI
comm = MPI.COMM_WORLD
me, size = comm.rank, comm.size
left, right = (me - 1) % size, (me + 1) % size
"""
FIRST: Final = HEAD.count("\n") + 1  # line of what follows
GROUPS: Final = (
    "half = comm.Split(me % 2)\nx = half.Create_intercomm(0, comm, 1 - me % 2)\n"
    "root = 0 if me % 2 else MPI.PROC_NULL if half.rank else MPI.ROOT\n"
)
OPEN: Final = "f = MPI.File.Open(comm, 'a.dat', MPI.MODE_CREATE | MPI.MODE_RDWR)\n"


class Wrong(NamedTuple):
    """A program with a fault.

    Attributes:
        kind: class of it.
        lines: that a finding of it names, from 1, behind `HEAD`.
    """

    kind: str
    lines: set[int]
    text: str
    ranks: int = 2


WRONG: Final = {
    "a tag that differs": Wrong(
        "deadlock",
        {2, 4},
        "if me:\n  comm.send(1, left, 7)\nelse:\n  comm.recv(source=1, tag=8)\ncomm.barrier()",
    ),
    "a ring that sends first": Wrong(
        "buffering-dependent", {1}, "comm.Send(bytes(8), right)\ncomm.Recv(bytearray(8), left)", 3
    ),
    "an early wait": Wrong(
        "buffering-dependent",
        {1},
        "comm.isend(me, right).wait()\ncomm.recv(source=left)",
    ),
    "another call of objects": Wrong(
        "collective-order", {2, 4}, "if me:\n  comm.bcast(1)\nelse:\n  comm.allgather(1)\n"
    ),
    "a call too many": Wrong(
        "collective-order", {2}, "if me == 0:\n  comm.bcast(1)\ncomm.recv(source=left) if me else "
        "comm.send(1, right)",
    ),
    "another root": Wrong("root-mismatch", {1}, "comm.bcast(me, root=me)"),
    "another operation": Wrong("op-mismatch", {1}, "comm.scan(me, MPI.MAX if me else MPI.MIN)"),
    "another type": Wrong(
        "type-mismatch",
        {2, 4},
        "if me:\n  comm.Send(array('d', [1, 2]), 0)\nelse:\n  comm.Recv(array('i', bytes(16)), 1)",
    ),
    "another type of a bcast": Wrong(
        "type-mismatch", {2}, "kind = 'q' if me else 'd'\ncomm.Bcast(array(kind, bytes(16)))"
    ),
    "another type along an edge": Wrong(
        "type-mismatch",
        {3},
        "ring = comm.Create_cart([size], periods=[True])\nkind = 'q' if me else 'd'\n"
        "ring.Neighbor_allgather(array(kind, bytes(8)), array(kind, bytes(16)))\nring.Free()",
        3,
    ),
    "another type at a window": Wrong(
        "type-mismatch",
        {3},
        "w = MPI.Win.Allocate(8, comm=comm)\nw.Fence()\n"
        "w.Put(array('d', [1]), right, (0, 1, MPI.INT64_T))\nw.Fence()\nw.Free()",
    ),
    "another type of partitions": Wrong(
        "type-mismatch",
        {2, 6},
        "if me:\n  r = comm.Psend_init(array('d', bytes(16)), 2, 0)\n  r.Start()\n"
        "  r.Pready_range(0, 1)\nelse:\n  r = comm.Precv_init(array('q', bytes(16)), 1, 1, 0)\n"
        "  r.Start()\nr.Wait()\nr.Free()",
    ),
    "another operation between two groups": Wrong(
        "op-mismatch", {4}, GROUPS + "x.allreduce(1, MPI.MAX if me == 2 else MPI.SUM)", 4
    ),
    "another root between two groups": Wrong(
        "root-mismatch", {4}, GROUPS + "x.bcast(1, max(root, 0) + (me == 3) if me % 2 else root)", 4
    ),
    "a root that does not know of it": Wrong(
        "root-mismatch", {4}, GROUPS + "x.bcast(1, 1 if me % 2 else root)", 4
    ),
    "another type between two groups": Wrong(
        "type-mismatch", {4}, GROUPS + "x.Bcast(array('q' if me % 2 else 'd', bytes(8)), root)", 4
    ),
    "another amount between two groups": Wrong(
        "count-mismatch",
        {4},
        GROUPS + "x.Allgather(bytes(2 if me == 1 else 1), bytearray(2 * (2 - me % 2)))",
        4,
    ),
    "less than a place in a window": Wrong(
        "count-mismatch",
        {2},
        "w = MPI.Win.Allocate(8, comm=comm); w.Fence()\nw.Get(bytearray(4), right, (0, 8))",
    ),
    "another operation's kind at a window": Wrong(
        "type-mismatch",
        {3},
        "w = MPI.Win.Allocate(8, comm=comm)\nw.Fence()\n"
        "w.Accumulate(array('d', [1]), right, (0, 1, MPI.INT64_T))\nw.Fence()\nw.Free()",
    ),
    "another type of a message that a probe took": Wrong(
        "type-mismatch",
        {2, 5},
        "if me:\n  comm.Send(array('d', [1, 2]), 0)\nelse:\n  m = comm.Mprobe(1)\n"
        "  m.Recv(array('i', bytes(16)))",
    ),
    "less room for a message that a probe took": Wrong(
        "count-mismatch",
        {2, 5},
        "if me:\n  comm.Send(bytes(9), 0)\nelse:\n  m = comm.Mprobe(1)\n"
        "  m.Irecv(bytearray(8)).Wait()",
    ),
    "too much": Wrong(
        "count-mismatch",
        {2, 4},
        "if me:\n  comm.Send(bytes(9), 0)\nelse:\n  comm.Recv(bytearray(8), 1)",
    ),
    "a rank that is not there": Wrong("invalid-argument", {1}, "comm.send(1, dest=me + 1)"),
    "a freed communicator": Wrong(
        "invalid-argument", {3}, "copy = comm.Dup()\ncopy.Free()\ncopy.barrier()"
    ),
    "a type that is not committed": Wrong(
        "invalid-argument",
        {2},
        "kind = MPI.INT.Create_contiguous(2)\ncomm.Send([bytearray(8), 1, kind], right)",
    ),
    "one that has ended, among several requests": Wrong(
        "deadlock",
        {2},
        "if me:\n  MPI.Request.waitall([comm.irecv(source=0, tag=k) for k in (1, 2)])\n"
        "else:\n  comm.send(1, 1, 2)",
    ),
    "who is first": Wrong(
        "message-race",
        {2},
        "if me == 0:\n  first = comm.recv(source=MPI.ANY_SOURCE)\n"
        "  comm.recv(source=MPI.ANY_SOURCE)\nelse:\n  comm.send(me, 0)",
        3,
    ),
    "who is first of a probe": Wrong(
        "message-race",
        {3},
        "if me == 0:\n  for _ in range(2):\n    m = comm.mprobe()\n    first = m.recv()\n"
        "else:\n  comm.send(me, 0)",
        3,
    ),
    "who is first, whose number nobody looks at": Wrong(
        "message-race",
        {4},
        "if me == 0:\n  values = []\n  for _ in range(2):\n    n, x = comm.recv()\n"
        "    values.append(x)\n  print(values[0])\nelse:\n  comm.send((me, me / 2), 0)",
        3,
    ),
    "who is first, in a dict whose number has another meaning": Wrong(
        "message-race",
        {4},
        "if me == 0:\n  table = {}\n  for _ in range(2):\n    for key, x in comm.recv().items():\n"
        "      table.setdefault(key, x)\n  print(table)\nelse:\n  comm.send({'answer': me}, 0)",
        3,
    ),
    "sends of a callback": Wrong(
        "buffering-dependent",
        {2},
        "def gone(c, key, value):\n  comm.send(value, right)\n  comm.recv(source=left)\n"
        "key = MPI.Comm.Create_keyval(delete_fn=gone)\nwork = comm.Dup()\n"
        "work.Set_attr(key, 1)\nwork.Free()",
    ),
    "a view that is written": Wrong(
        "buffer-in-use",
        {3, 5},
        "data = bytearray(64)\nwhole, part = memoryview(data), memoryview(data)[16:32]\n"
        "r = comm.Isend(part, right)\ncomm.Recv(bytearray(16), left)\nwhole[20:22] = b'ab'\n"
        "r.Wait()",
    ),
    "a view of another kind that is read": Wrong(
        "buffer-in-use",
        {3, 5},
        "data = bytearray(64)\nwords = memoryview(data).cast('i')\n"
        "r = comm.Irecv(data, left)\ncomm.Send(bytes(64), right)\nfirst = words[1]\nr.Wait()",
    ),
    "an array of a list that is read": Wrong(
        "buffer-in-use",
        {2, 4},
        "rooms = [bytearray(64), array('d', [0])]\nr = comm.Irecv(rooms[1], left)\n"
        "comm.Send(array('d', [1]), right)\nfirst = rooms[me - me + 1][0]\nr.Wait()",
    ),
    "an array that gets a name later": Wrong(
        "buffer-in-use",
        {2, 5},
        "rooms = {left: array('d', [0])}\nr = comm.Irecv(rooms[left], left)\n"
        "comm.Send(array('d', [1]), right)\nfor room in rooms.values():\n  total = sum(room)\n"
        "r.Wait()",
    ),
    "an array that is stored into another one": Wrong(
        "buffer-in-use",
        {3, 5},
        "np = __import__('numpy')\nfield, ghosts = np.zeros((2, 4)), [np.zeros(4)]\n"
        "rs = [comm.Irecv(each, left) for each in ghosts]\ncomm.Send(np.ones(4), right)\n"
        "field[0, :] = ghosts[0]\nMPI.Request.Waitall(rs)",
    ),
    "an attribute of another object's that is read": Wrong(
        "buffer-in-use",
        {4, 8},
        "class Halo:\n  room = property(lambda self: 1)\n  def begin(self):\n"
        "    return comm.Irecv(self.inn, left)\nhalo, top = Halo(), Halo()\n"
        "halo.inn, top.halo = array('d', [0]), halo\nr = top.halo.begin()\n"
        "border = 1 + top.halo.inn[0] + halo.room\ncomm.Send(array('d', [1]), right)\nr.Wait()",
    ),
    "an array that a function has returned": Wrong(
        "buffer-in-use",
        {3, 6},
        "def begin():\n  room = array('d', [0])\n  return room, comm.Irecv(room, left)\n"
        "comm.Isend(array('d', [1]), right).Wait()\nroom, r = begin()\nb = 1 + room[0]\nr.Wait()",
    ),
    "an array of an attribute's attribute, by another name": Wrong(
        "buffer-in-use",
        {5, 8, 12},
        "class Patch:\n  def __init__(self):\n    self.ghost = {'w': array('d', [0])}\n"
        "class Solver:\n  def begin(self): return comm.Irecv(self.patch.ghost['w'], left)\n"
        "  def border(self):\n    p = self.patch\n    return p.ghost['w'][0]\nsolver = Solver()\n"
        "solver.patch = Patch()\nr = solver.begin()\nb = solver.border()\n"
        "comm.Send(array('d', [1]), right)\nr.Wait()",
    ),
    "a column that a datatype names": Wrong(
        "buffer-in-use",
        {4, 6},
        "np = __import__('numpy')\nu, kind = np.zeros((3, 4)), MPI.DOUBLE.Create_vector(3, 1, 4)\n"
        "kind.Commit()\nr = comm.Irecv([u, 1, kind], left)\ncomm.Send(np.ones(3), right)\n"
        "edge = u[1:, 0] + 1\nr.Wait()\nkind.Free()",
    ),
    "an array of a list that a method reads": Wrong(
        "buffer-in-use",
        {5, 7, 10},
        "class Halo:\n  def __init__(self):\n    self.rooms = [array('d', [0])]\n"
        "  def begin(self):\n    return comm.Irecv(self.rooms[0], left)\n  def border(self):\n"
        "    return self.rooms[0][0]\nhalo = Halo()\nr = halo.begin()\nb = halo.border()\n"
        "comm.Send(array('d', [1]), right)\nr.Wait()",
    ),
    "an array of a list that is changed": Wrong(
        "buffer-in-use",
        {3, 5},
        "np = __import__('numpy')\nrows = [np.ones(2), np.ones(2)]\n"
        "r = comm.Irecv(rows[1], left)\ncomm.Send(rows[0], right)\nrows[1] += 1\nr.Wait()",
    ),
    "what a request gets from a window": Wrong(
        "buffer-in-use",
        {4, 5},
        "w = MPI.Win.Allocate(8, comm=comm)\nroom = array('d', [0])\nw.Lock(left)\n"
        "r = w.Rget(room, left)\ntotal = room[0]\nr.Wait()\nw.Unlock(left)\nw.Free()",
    ),
    "a part of an array that is written": Wrong(
        "buffer-in-use",
        {3, 5},
        "np = __import__('numpy')\ndata = np.zeros(8); part = data[2:4]\n"
        "r = comm.Isend(data, right)\ncomm.Recv(np.zeros(8), left)\npart[0] = 1\nr.Wait()",
    ),
    "a buffer that is written": Wrong(
        "buffer-in-use",
        {2, 3},
        "data = bytearray(8)\nr = comm.Isend(data, right)\ndata[0] = 1\n"
        "comm.Recv(bytearray(8), left)\nr.Wait()",
    ),
    "a buffer that a function writes": Wrong(
        "buffer-in-use",
        {4},
        "def fill(data):\n  data[:] = bytes([9]) * 8\nmine = bytearray(8)\n"
        "r = comm.Isend(mine, right)\nfill(mine)\ncomm.Recv(bytearray(8), left)\nr.Wait()",
    ),
    "a persistent reduction whose input is written": Wrong(
        "buffer-in-use",
        {3, 4},
        "data, room = bytearray(8), bytearray(8)\nr = comm.Allreduce_init(data, room)\n"
        "r.Start()\ndata[0] = 1\nr.Wait()\nr.Free()",
    ),
    "a partition that is written": Wrong(
        "buffer-in-use",
        {5},
        "data = bytearray(8)\nif me:\n  r = comm.Psend_init(data, 2, 0)\n  r.Start()\n"
        "  r.Pready(0)\n  data[1] = 1\n  data[5] = 1; r.Pready(1)\nelse:\n"
        "  r = comm.Precv_init(data, 2, 1, 0)\n  r.Start()\nr.Wait()\nr.Free()",
    ),
    "two receives into one place": Wrong(
        "buffer-in-use",
        {2, 3},
        "room = bytearray(8)\na = comm.Irecv(room, left)\n"
        "b = comm.Irecv(memoryview(room)[4:], left)\n"
        "comm.Send(bytes(8), right); comm.Send(bytes(4), right)\nMPI.Request.Waitall([a, b])",
    ),
    "a send nobody waits for": Wrong(
        "request-lifecycle", {1}, "comm.isend(me, right)\ncomm.recv(source=left)"
    ),
    "started twice": Wrong(
        "request-lifecycle",
        {3},
        "r = comm.Recv_init(bytearray(1), left)\nr.Start()\nr.Start()",
    ),
    "a communicator": Wrong("leak", {1}, "copy = comm.Dup()"),
    "a nonblocking duplicate": Wrong(
        "leak", {1}, "copy, r = comm.Idup()\nr.Wait()\ncopy.barrier()"
    ),
    "a nonblocking communicator of those who live": Wrong(
        "leak", {1}, "rest, r = comm.Ishrink()\nr.Wait()\nrest.barrier()"
    ),
    "a datatype": Wrong("leak", {1}, "kind = MPI.INT.Create_vector(2, 1, 2).Commit()"),
    "a file that is never closed": Wrong(
        "leak", {1}, "MPI.File.Open(comm, 'a.dat', MPI.MODE_CREATE | MPI.MODE_RDWR)"
    ),
    "a closed file": Wrong(
        "invalid-argument", {3}, f"{OPEN}f.Close()\nf.Write_at(me, bytes(1))"
    ),
    "modes of a file": Wrong(
        "invalid-argument",
        {1},
        "MPI.File.Open(comm, 'a', MPI.MODE_CREATE | (MPI.MODE_RDWR if me else MPI.MODE_WRONLY))",
    ),
    "sizes of a file": Wrong("count-mismatch", {2}, f"{OPEN}f.Set_size(8 + me)\nf.Close()"),
    "a file that all write": Wrong(
        "rma-race", {2}, f"{OPEN}f.Write_at_all(0, bytes([me]))\nf.Close()"
    ),
    "a file that is written and read": Wrong(
        "rma-race",
        {3, 5},
        f"{OPEN}if me:\n  f.Write_at(0, bytes(8))\nelse:\n  f.Read_at(4, bytearray(8))\nf.Close()",
    ),
    "a split call that another ends": Wrong(
        "request-lifecycle",
        {2, 3},
        f"{OPEN}f.Write_at_all_begin(8 * me, bytes(8))\nf.Write_all_end(bytes(8))",
    ),
    "memory that goes to a file": Wrong(
        "buffer-in-use",
        {3, 4},
        f"{OPEN}u = bytearray(8)\nr = f.Iwrite_at(8 * me, u)\nu[0] = 1\nr.Wait()\nf.Close()",
    ),
    "a message": Wrong("leak", {1}, "comm.bsend(me, right) if 0 else comm.isend(me, right).wait()"),
}  # fmt: skip

RIGHT: Final = {
    "a ring": "r = comm.isend(me, right)\ncomm.recv(source=left)\nr.wait()",
    "one that asks who sent": (
        "if me == 0:\n  s = MPI.Status()\n  for _ in range(size - 1):\n"
        "    comm.recv(source=MPI.ANY_SOURCE, status=s)\nelse:\n  comm.send(me, 0)"
    ),
    "probes that ask who sent, and a sum of them": (
        "if me == 0:\n  s, total = MPI.Status(), 0\n  for _ in range(size - 1):\n"
        "    m = comm.mprobe(tag=0, status=s)\n    x = m.recv()\n    m = comm.Mprobe(s.source, 1)\n"
        "    b = bytearray(1)\n    m.Recv(b)\n  for _ in range(size - 1):\n"
        "    m = comm.Mprobe(tag=2)\n    m.Recv(b, s)\n  for _ in range(size - 1):\n"
        "    total += comm.mprobe(tag=3).recv()\nelse:\n  comm.send(me, 0, 0)\n"
        "  comm.Send(bytes(1), 0, 1)\n  comm.Send(bytes(1), 0, 2)\n  comm.send(me, 0, 3)"
    ),
    "probes by the class of messages": (
        "for k in (1, 2):\n  r = comm.isend(k, me)\n"
        "  assert k == MPI.Message.probe(comm, me).recv()\n"
        "  r.wait()\n  r = comm.Isend(array('d', bytes(8 * k)), me)\n"
        "  m = MPI.Message.Iprobe(comm, me, 0)\n  m.Irecv(array('d', bytes(8 * k))).Wait()\n"
        "  r.Wait()"
    ),
    "a datatype of datatypes that was pickled": (
        "import copy, pickle\nrow = MPI.INT.Create_contiguous(2)\n"
        "both = MPI.Datatype.Create_struct([1, 1], [0, 16], [row, MPI.INT])\n"
        "kind = both.Create_vector(2, 1, 2).Commit()\nnew = pickle.loads(pickle.dumps(kind))\n"
        "other = copy.copy(kind)\nassert new.extent == other.extent == kind.extent\n"
        "for each in (new, other, kind, both, row):\n  each.Free()"
    ),
    "a sum that begins with the first": (
        "if me == 0:\n  total = comm.recv()\n  for _ in range(size - 2):\n"
        "    total += comm.recv()\n  print(total)\nelse:\n  comm.send(me, 0)"
    ),
    "a sum of what comes": (
        "total = 0\nif me == 0:\n  for _ in range(size - 1):\n"
        "    total += comm.recv(source=MPI.ANY_SOURCE)\nelse:\n  comm.send(me, 0)"
    ),
    "a rank without neighbours": (
        "edges = ([1], [1]) if me == 0 else ([0], [0]) if me == 1 else ([], [])\n"
        "g = comm.Create_dist_graph_adjacent(*edges)\n"
        "kind = MPI.INT.Create_contiguous(2).Commit()\n"
        "data = array('i', [0] * 2 * len(edges[0]))\nroom = array('i', data)\n"
        "r = g.Neighbor_alltoall_init([data, kind], [room, kind])\nr.Start()\nr.Wait()\nr.Free()\n"
        "kind.Free()\ng.Free()"
    ),
    "partitions of one tag, begun in any order": (
        "sends = [comm.Psend_init(array(k, bytes(16)), 2, right) for k in 'dq']\n"
        "takes = [comm.Precv_init(array(k, bytes(16)), 1, left, 0) for k in 'dq']\n"
        "for r in sends + takes[::-1]:\n  r.Start()\nfor r in sends:\n  r.Pready_range(0, 1)\n"
        "MPI.Request.Waitall(sends + takes)\nfor r in sends + takes:\n  r.Free()"
    ),
    "partitions to oneself": (
        "r = comm.Precv_init(bytearray(8), 2, me, 0)\ns = comm.Psend_init(bytes(8), 2, me)\n"
        "r.Start()\ns.Start()\ns.Pready_range(0, 1)\nMPI.Request.Waitall([r, s])\n"
        "r.Free()\ns.Free()"
    ),
    "partitions, one after the other": (
        "data = bytearray(8)\nif me == 0:\n  r = comm.Psend_init(data, 2, 1)\n  for k in (0, 1):\n"
        "    r.Start()\n    data[:4] = bytes([k] * 4)\n    r.Pready(0)\n    data[5] = k\n"
        "    r.Pready(1)\n    r.Wait()\n  r.Free()\nelif me == 1:\n"
        "  r = comm.Precv_init(data, 4, 0, 0)\n  for k in (0, 1):\n    r.Start()\n"
        "    while not r.Parrived(0): pass\n    assert data[0] == k\n    r.Wait()\n  r.Free()"
    ),
    "another part of the memory": (
        "data = bytearray(16)\nview = memoryview(data)\nr = comm.Isend(view[:8], right)\n"
        "data[9] = 1\ncomm.Recv(bytearray(8), left)\nr.Wait()"
    ),
    "the other half of an array": (
        "np = __import__('numpy')\ndata = np.zeros(8)\nmine, rest = data[:4], data[4:]\n"
        "r = comm.Irecv(mine, left)\nrest[:] = 3\nrest += 1\nprint(rest.sum(), rest)\n"
        "comm.Send(np.ones(4), right)\nr.Wait()"
    ),
    "an array that a function has returned, and that is handed on": (
        "def begin():\n  room = array('d', [0])\n  return room, comm.Irecv(room, left)\n"
        "def pair(one, other):\n  return one, other\nroom, r = begin()\n"
        "both = pair(room, 1 + me)\ncomm.Send(array('d', [1]), right)\nr.Wait()\n"
        "print(both[0][0])"
    ),
    "other arrays of a list, and what a list is asked": (
        "np = __import__('numpy')\nrows = [np.ones(2), np.ones(2), np.ones(4)]\n"
        "rs = [comm.Irecv(rows[0], left, 1), comm.Irecv(rows[2][:2], left, 2)]\n"
        "print(rows[1].sum(), rows[0].shape, len(rows[0]), rows[2][3], rows[2][2:] + 1)\n"
        "rows[1] += 1\nrows[2][3] = 1\nnames = {}\nnames[0] = row = rows[0]\n"
        "for row in rows[1:2]:\n  row[:] = 0\n"
        "kept, rows[0] = rows[0], np.zeros(2)\nrows[0][1] = kept.size + rows[0][0]\n"
        "comm.Send(np.ones(2), right, 1)\ncomm.Send(np.ones(2), right, 2)\n"
        "MPI.Request.Waitall(rs)\nprint(kept, rows)"
    ),
    "other columns than a datatype names": (
        "np = __import__('numpy')\nu, kind = np.zeros((3, 4)), MPI.DOUBLE.Create_vector(3, 1, 4)\n"
        "kind.Commit()\nrs = [comm.Irecv([u, 1, kind], left)]\n"
        "rs.append(comm.Isend([u.ravel()[3:], 1, kind], right))\n"
        "u[:, 1] = u[1, 2] + u[1:, 1:3].sum()\n"
        "def inner(a):\n  a[1, 1:] += a[2, 2]\ndef outer(a):\n  return a.shape\n"
        "inner(u[:, :3])\nouter(u)\nprint(np.linalg.norm(u[:, 1:3]), u[2][1], len(u[0]))\n"
        "MPI.Request.Waitall(rs)\nkind.Free()"
    ),
    "other parts of a buffer, in many ways": (
        "import struct\ndata = bytearray(64)\nwhole = memoryview(data)\n"
        "mine, rest = whole[:32], whole[32:]\nr = comm.Irecv(mine, left)\nrest[0] = 1\n"
        "rest[4:6] = b'ab'\ndata[40] = whole[41]\nwords = rest.cast('i')\nwords[1] += 2\n"
        "print(sum(rest), data.find(b'a', 32), struct.unpack_from('i', data, 40), words[2])\n"
        "struct.pack_into('i', data, 40, 5)\nkind = mine.cast('i')\nprint(mine.obj is data)\n"
        "comm.Send(bytes(32), right)\nr.Wait()"
    ),
    "a nonblocking duplicate that is freed": "c, r = comm.Idup()\nr.Wait()\nc.barrier()\nc.Free()",
    "agreement": (
        "flag = array('i', [7])\nr = comm.Iagree(flag)\nr.Wait()\nassert comm.Agree(6) == 6\n"
        "rest, r = comm.Ishrink()\nr.Wait()\nrest.Free()\ncomm.Shrink().Free()"
    ),
    "a cancelled receive": "r = comm.Irecv(bytearray(8), left, 9)\nr.Cancel()\nr.Wait()",
    "an error that is caught": "try:\n  comm.send(1, 99)\nexcept MPI.Exception:\n  pass",
    "parts of a communicator": (
        "half = comm.Split(me % 2)\nhalf.allreduce(1)\nhalf.Free()\n"
        "none = comm.Split(MPI.UNDEFINED)\nassert none == MPI.COMM_NULL"
    ),
    "calls between two groups": (
        GROUPS
        + "x.Bcast(array('d', bytes(8)), root)\nassert x.allreduce(me % 2) == 2 * (1 - me % 2) "
        "if size == 4 else x.allreduce(1)\nx.gather(me, root)\n"
        "x.scatter([1] * x.remote_size if root == MPI.ROOT else None, root)\n"
        "x.Allgather(bytes(1), bytearray(x.remote_size))\n"
        "x.Gather(bytes(2), bytearray(2 * x.remote_size), root)\n"
        "x.Scatter(bytes(2 * x.remote_size) if root == MPI.ROOT else None, bytearray(2), root)\n"
        "x.Free()\nhalf.Free()"
    ),
    "persistent requests": (
        "out = comm.Send_init(bytearray(8), right)\ninto = comm.Recv_init(bytearray(8), left)\n"
        "for _ in range(3):\n  MPI.Prequest.Startall([into, out])\n"
        "  MPI.Request.Waitall([into, out])\nout.Free()\ninto.Free()"
    ),
    "blocks of unequal size": (
        "counts = [1, 2, 3][:size]\nroom = array('d', bytes(8 * sum(counts)))\n"
        "comm.Allgatherv(array('d', bytes(8 * counts[me])), [room, counts, MPI.DOUBLE])"
    ),
    "a column received in a row": (
        "kind = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()\nr = comm.Isend([array('d', bytes(32)), "
        "1, kind], right)\ncomm.Recv(array('d', bytes(16)), left)\nr.Wait()\nkind.Free()"
    ),
    "parts of a file": (
        f"{OPEN}f.Write_at_all(8 * me, bytes(8))\nf.Sync()\ncomm.barrier()\nf.Sync()\n"
        "room = bytearray(8)\nf.Read_at_all_begin(8 * right, room)\nf.Read_at_all_end(room)\n"
        "r = f.Iwrite_at(8 * (size + me), room)\nr.Wait()\nroom[0] = 1\nf.Close()"
    ),
    "objects exchanged again and again": (
        "for _ in range(3):\n    assert comm.sendrecv(me, right, source=left) == left\n"
        "    comm.Sendrecv(array('i', [me]), right, 0, array('i', [0]), left, 0)"
    ),
    "what an attribute frees": (
        "key = MPI.Comm.Create_keyval(delete_fn=lambda c, k, v: v.Free())\n"
        "held = comm.Dup()\nheld.Set_attr(key, comm.Dup())\nheld.Free()\n"
        "MPI.Comm.Free_keyval(key)"
    ),
    "a send that is refused, and the program goes on": (
        "for call, tag in ((comm.Send, -5), (comm.Ssend, 2**31)):\n  try:\n"
        "    call(bytearray(8), right, tag)\n  except MPI.Exception:\n    pass\n"
        "comm.Sendrecv(bytearray(8), right, 0, bytearray(8), left, 0)"
    ),
    "a packed message that is received as what it is": (
        "packed = bytearray(64)\nplace = MPI.DOUBLE.Pack(array('d', [1, 2]), packed, 0, comm)\n"
        "r = comm.Isend([packed, place, MPI.PACKED], right)\n"
        "comm.Recv([array('d', [0, 0]), 2, MPI.DOUBLE], left)\nr.Wait()"
    ),
    "an answer in a dict that says whose it is": (
        "if me == 0:\n  for _ in range(size - 1):\n    one = comm.recv()\n"
        "    print(one['rank'], one['value'])\nelse:\n  comm.send({'rank': me, 'value': me / 2}, 0)"
    ),
    "a message that is expected to be lost": "comm.isend(me, right).wait()  # ompy: expect leak",
}


def check(
    folder: Path, text: str, *options: str, ranks: int = 2, head: str = HEAD
) -> tuple[Any, str, int]:
    """Run a program under the checker: what was found, what was said, the exit code."""
    (folder / "app.py").write_text(head + text + "\n")
    command = [BIN / "ompy-run", "-n", str(ranks), "--check-report", "found.json", *options]
    done = subprocess.run(
        [*map(str, command), "python", "app.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return json.loads((folder / "found.json").read_text())["findings"], done.stderr, done.returncode


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong(name: str, tmp_path: Path) -> None:
    wrong = WRONG[name]
    found, said, code = check(tmp_path, wrong.text, ranks=wrong.ranks)
    assert code == FOUND, said
    ours = [one for one in found if one["class"] == wrong.kind]
    assert ours, found
    lines = {site["line"] - FIRST + 1 for one in ours for site in one["sites"]}
    assert wrong.lines <= lines, found
    assert all(site["file"] == str(tmp_path / "app.py") for one in ours for site in one["sites"])
    assert f"ompy-run: {wrong.kind}: " in said


@pytest.mark.parametrize("ranks", [2, 3] if THOROUGH else [3])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right(name: str, ranks: int, tmp_path: Path) -> None:
    found, said, code = check(tmp_path, RIGHT[name], ranks=ranks)
    assert (found, code) == ([], 0), said
    assert "ompy-run: check: nothing was found" in said


def test_the_session_that_makes_a_process_a_rank(tmp_path: Path) -> None:
    """The checker begins within the call that makes it."""
    head = "import mpi4py\nmpi4py.rc.initialize = False\nfrom mpi4py import MPI\n"
    text = "session = MPI.Session.Init()\nother = MPI.Session.Init()\nother.Finalize()\n"
    found, _, code = check(tmp_path, text, head=head)
    assert code == FOUND
    assert [one["class"] for one in found] == ["leak"]
    assert {site["line"] for site in found[0]["sites"]} == {4}
    assert check(tmp_path, f"{text}session.Finalize()", head=head)[0] == []


def test_sends_that_wait_for_their_receives(tmp_path: Path) -> None:
    """What the second run of the calls says is what happens where nothing is buffered."""
    text = "comm.send(me, right)\ncomm.recv(source=left)"
    found, _, code = check(tmp_path, text, "--check=buffering")
    assert code == FOUND
    assert [one["class"] for one in found] == ["buffering-dependent"]


def test_in_json(tmp_path: Path) -> None:
    found, said, _ = check(tmp_path, "comm.bcast(me, root=me)", "--log-format", "json")
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    (told,) = [event["findings"] for event in events if event["event"] == "check"]
    assert told == found
    assert {site["call"] for site in found[0]["sites"]} == {"comm.bcast"}


def test_nothing_is_left(tmp_path: Path) -> None:
    """Of the calls that ranks have written down nothing stays, whatever ends the job."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    (tmp_path / "app.py").write_text(HEAD + "import os\nos.kill(os.getpid(), 9)\n")
    command = [BIN / "ompy-run", "-n", "2", "--check", "python", "app.py"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(
        list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 128 + 9
    assert not [path for path in temporary.iterdir() if path.name.startswith("ompy-check")]
