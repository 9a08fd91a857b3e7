"""`mpi4py.util`: `pkl5`, `sync`, `pool`, `dtlib`. Each is imported when it is asked for."""
