"""`python -m mpi4py.bench`: small measurements and tests of a job."""

from ompy.addons.bench import futures, helloworld, main, pingpong, ringtest

__all__ = ["futures", "helloworld", "main", "pingpong", "ringtest"]

if __name__ == "__main__":
    main()
