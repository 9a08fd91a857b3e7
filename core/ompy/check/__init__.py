"""Finds at run time what a program does wrong with MPI, and says where: `ompy-run --check`."""
