"""What mpi4py has beside `mpi4py.MPI`, over `ompy.MPI` alone: see the README here."""
