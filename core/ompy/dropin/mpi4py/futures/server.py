"""Workers that a client starts or connects to: not available yet."""


def main():
    """What a worker process runs.

    Raises:
        NotImplementedError: always: it would have been started by `MPI.Intracomm.Spawn`.
    """
    from ompy.addons.futures.executor import NO_SPAWN

    raise NotImplementedError(NO_SPAWN.format("mpi4py.futures.server"))


if __name__ == "__main__":
    main()
