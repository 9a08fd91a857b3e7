"""`python -m mpi4py`: see `mpi4py.run`."""

from mpi4py.run import main

if __name__ == "__main__":
    main()
