"""emcee: an ensemble sampler whose likelihoods are computed by a pool of ranks (schwimmbad)."""

import sys

import emcee
import numpy as np
from schwimmbad import MPIPool


def log_probability(place):
    return -0.5 * float(np.sum(place**2))


def chain(pool):
    """The same draws, whoever computes."""
    rng = np.random.RandomState(7)
    start = rng.randn(12, 3)
    sampler = emcee.EnsembleSampler(12, 3, log_probability, pool=pool)
    sampler.random_state = rng.get_state()
    sampler.run_mcmc(start, 60)
    return sampler.get_chain()


with MPIPool() as pool:
    if not pool.is_master():
        pool.wait()
        sys.exit(0)
    assert np.array_equal(chain(pool), chain(None))
print("fine")
