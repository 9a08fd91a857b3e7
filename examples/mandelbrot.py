"""The Mandelbrot set: rows are dealt out like cards, uneven shares come back by Gatherv."""

import numpy as np
from mpi4py import MPI

WIDTH, HEIGHT, LIMIT = 72, 28, 60
SHADES = " .:-=+*#%@"

comm = MPI.COMM_WORLD


def row(number):
    """Iterations until escape for one row of points."""
    y = -1.2 + 2.4 * number / (HEIGHT - 1)
    c = np.linspace(-2.1, 0.7, WIDTH) + 1j * y
    z = np.zeros_like(c)
    counts = np.zeros(WIDTH, dtype="i")
    for _ in range(LIMIT):
        inside = np.abs(z) < 2.0
        counts[inside] += 1
        z[inside] = z[inside] ** 2 + c[inside]
    return counts


numbers = np.arange(comm.rank, HEIGHT, comm.size, dtype="i")
mine = np.array([row(number) for number in numbers], dtype="i").reshape(len(numbers), WIDTH)

shares = comm.gather(len(numbers), root=0)
picture = order = None
if comm.rank == 0:
    picture = np.empty((HEIGHT, WIDTH), dtype="i")
    order = np.empty(HEIGHT, dtype="i")
    widths = [share * WIDTH for share in shares]
comm.Gatherv(numbers, [order, shares, MPI.INT] if comm.rank == 0 else None, root=0)
comm.Gatherv(mine, [picture, widths, MPI.INT] if comm.rank == 0 else None, root=0)
if comm.rank == 0:
    image = np.empty_like(picture)
    image[order] = picture
    assert all((image[number] == row(number)).all() for number in range(HEIGHT))
    for line in image:
        print("".join(SHADES[count * (len(SHADES) - 1) // LIMIT] for count in line))
    print(f"drawn by {comm.size} rank(s), {shares} rows each")
