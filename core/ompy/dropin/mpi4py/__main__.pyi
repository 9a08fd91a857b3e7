from mpi4py.run import main as main
