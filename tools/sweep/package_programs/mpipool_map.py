"""mpipool: an executor on the ranks of the job."""

from mpipool import MPIExecutor


def squared(number):
    return number * number


if __name__ == "__main__":
    with MPIExecutor() as pool:
        pool.workers_exit()
        assert list(pool.map(squared, range(40))) == [number * number for number in range(40)]
        print("fine")
