"""nautilus: importance nested sampling, with likelihoods by MPIPoolExecutor."""

import numpy as np
from mpi4py.futures import MPIPoolExecutor
from nautilus import Prior, Sampler


def likelihood(parameters):
    return -0.5 * ((parameters["a"] / 0.1) ** 2 + (parameters["b"] / 0.1) ** 2)


if __name__ == "__main__":
    prior = Prior()
    prior.add_parameter("a", dist=(-1, 1))
    prior.add_parameter("b", dist=(-1, 1))
    with MPIPoolExecutor() as pool:
        sampler = Sampler(prior, likelihood, n_live=200, pool=pool, seed=3, n_networks=1)
        sampler.run(verbose=False, n_eff=500, f_live=0.1)
    # the integral of a Gaussian over a square of area 4
    assert abs(sampler.log_z - np.log(2 * np.pi * 0.01 / 4)) < 0.3, sampler.log_z
    print("fine")
