"""DeepHyper: a search whose evaluations run on the ranks of an MPICommExecutor."""

import numpy as np
from deephyper.evaluator import Evaluator
from deephyper.hpo import HpProblem, RandomSearch
from mpi4py import MPI


def run(job):
    return {"objective": -((job["x"] - 0.25) ** 2), "metadata": {"rank": MPI.COMM_WORLD.rank}}


problem = HpProblem()
problem.add_hyperparameter((0.0, 1.0), "x")
with Evaluator.create(run, method="mpicomm") as evaluator:
    if MPI.COMM_WORLD.rank == 0:
        results = RandomSearch(problem, random_state=1).search(evaluator, max_evals=30)
        assert len(results) >= 30
        assert np.allclose(results["objective"], -((results["p:x"] - 0.25) ** 2))
        assert set(results["m:rank"]) == set(range(1, MPI.COMM_WORLD.size))
        print("fine")
