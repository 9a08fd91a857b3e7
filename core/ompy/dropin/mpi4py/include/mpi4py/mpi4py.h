/* ompy is written in Python: there are no C functions to declare, and no MPI handles in C. */
#error "this mpi4py is ompy's drop-in: it has no C API"
