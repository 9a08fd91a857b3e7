"""pySDC: PFASST, time steps on ranks, of a small heat equation."""

import numpy as np
from mpi4py import MPI
from pySDC.implementations.controller_classes.controller_MPI import controller_MPI
from pySDC.implementations.controller_classes.controller_nonMPI import controller_nonMPI
from pySDC.implementations.problem_classes.TestEquation_0D import testequation0d
from pySDC.implementations.sweeper_classes.generic_implicit import generic_implicit

comm = MPI.COMM_WORLD
description = {
    "problem_class": testequation0d,
    "problem_params": {"lambdas": np.array([-1.0, -2.0]), "u0": 1.0},
    "sweeper_class": generic_implicit,
    "sweeper_params": {"quad_type": "RADAU-RIGHT", "num_nodes": 3, "QI": "LU"},
    "level_params": {"restol": 1e-10, "dt": 0.1},
    "step_params": {"maxiter": 50},
}


def end_value(controller, problem):
    u0 = problem.u_exact(0.0)
    return np.array(controller.run(u0=u0, t0=0.0, Tend=0.1 * 2 * comm.size)[0])


parallel = controller_MPI({"logger_level": 40}, description, comm)
found = end_value(parallel, parallel.S.levels[0].prob)
alone = controller_nonMPI(comm.size, {"logger_level": 40}, description)
expected = end_value(alone, alone.MS[0].levels[0].prob)
assert np.allclose(found, expected, atol=1e-8), (found, expected)
if comm.rank == 0:
    print("fine")
