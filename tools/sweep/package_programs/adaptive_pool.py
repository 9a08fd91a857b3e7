"""adaptive: a function is sampled where it bends, by MPIPoolExecutor."""

import adaptive
from mpi4py.futures import MPIPoolExecutor


def peak(x):
    return x + 0.01 / (0.01 + x * x)


if __name__ == "__main__":
    learner = adaptive.Learner1D(peak, bounds=(-1, 1))
    with MPIPoolExecutor() as pool:
        pool.bootup()
        adaptive.BlockingRunner(
            learner, goal=lambda one: one.npoints >= 100, executor=pool, shutdown_executor=False
        )
    assert all(y == peak(x) for x, y in learner.data.items())
    print("fine")
