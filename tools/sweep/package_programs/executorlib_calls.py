"""executorlib: an executor whose calls run on two ranks each, started by mpiexec."""

from executorlib import SingleNodeExecutor


def shared_sum(number):
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    return comm.rank, comm.allreduce(number)


if __name__ == "__main__":
    with SingleNodeExecutor(block_allocation=False) as executor:
        futures = [
            executor.submit(shared_sum, number, resource_dict={"cores": 2}) for number in (3, 4)
        ]
        assert [future.result() for future in futures] == [[(0, 6), (1, 6)], [(0, 8), (1, 8)]]
    print("fine")
