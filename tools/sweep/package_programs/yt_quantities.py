"""yt: derived quantities and a projection of a grid in pieces, which ranks share among them."""

import numpy as np
import yt
from mpi4py import MPI

SIDE = 32
comm = MPI.COMM_WORLD
yt.set_log_level("error")
assert yt.enable_parallelism(), "yt finds several ranks"
density = np.random.default_rng(1).random((SIDE, SIDE, SIDE))
fields = {"density": (density, "g/cm**3")}
grid = yt.load_uniform_grid(fields, density.shape, length_unit="cm", nprocs=8)
everything = grid.all_data()
mass = everything.quantities.total_quantity([("gas", "cell_mass")])
low, high = everything.quantities.extrema(("gas", "density"))
assert np.isclose(float(mass), density.mean())
assert (float(low), float(high)) == (density.min(), density.max())
seen = grid.proj(("gas", "density"), 0)
areas = 4 * seen["pdx"] * seen["pdy"]  # these are halves of the sides
assert np.isclose(float((seen[("gas", "density")] * areas).sum()), float(mass))
if comm.rank == 0:
    print("fine")
