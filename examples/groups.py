"""Ranks part into even and odd, and a group of the first half talks among itself."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
color = comm.rank % 2
part = comm.Split(color, key=-comm.rank)
members = part.allgather(comm.rank)
assert members == sorted((r for r in range(comm.size) if r % 2 == color), reverse=True)
assert part.rank == members.index(comm.rank)

everybody = comm.Get_group()
half = everybody.Incl(list(range((comm.size + 1) // 2)))
front = comm.Create(half)
if front != MPI.COMM_NULL:
    total = front.allreduce(comm.rank)
    assert total == sum(range(half.Get_size()))
    front.Free()
else:
    assert comm.rank >= half.Get_size()

copy = comm.Dup()
if comm.size > 1:
    # the same tag in two communicators: messages do not mix
    if comm.rank == 0:
        first = copy.isend("in the copy", dest=1, tag=5)  # the other one is received before it
        comm.send("in the world", dest=1, tag=5)
        first.wait()
    elif comm.rank == 1:
        assert comm.recv(source=0, tag=5) == "in the world"
        assert copy.recv(source=0, tag=5) == "in the copy"
copy.Free()
part.Free()
if comm.rank == 0:
    print(f"{comm.size} rank(s) parted and met again")
