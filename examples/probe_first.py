"""A receiver that does not know how much is coming asks first."""

from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
data = array("d", range(10 * comm.rank + 3))
request = comm.Isend(data, dest=right, tag=7)

status = MPI.Status()
comm.Probe(source=MPI.ANY_SOURCE, tag=7, status=status)
count = status.Get_count(MPI.DOUBLE)
assert status.Get_source() == left
assert count == 10 * left + 3
room = array("d", bytes(8 * count))
comm.Recv(room, source=left, tag=7)
request.Wait()
assert room == array("d", range(count))
assert not comm.Iprobe(source=MPI.ANY_SOURCE, tag=7)
counts = comm.gather(count, root=0)
if comm.rank == 0:
    print(f"messages of {sorted(counts)} numbers found by probing")
