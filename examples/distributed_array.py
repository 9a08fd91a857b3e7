"""An array in pieces: every rank holds one, and reads and writes any element of the others'.

A rod is heated in the middle. Each rank works on its own piece, which is a NumPy array over its
segment, and puts its two border values into its neighbours' pieces: nobody receives anything. In
the end rank 0 reads the whole array with one get for each rank, all under way at once.
"""

import numpy as np
from ompy import gasnet

STEPS = 20
EACH = 16  # elements of a piece


class DistributedArray:
    """Numbers 0 to `size`, the same many with each rank, and a cell for each neighbour's border.

    In every segment: the left neighbour's last element, the own ones, the right one's first.
    """

    def __init__(self, each: int) -> None:
        self.each = each
        self.size = each * gasnet.nodes()
        self.cells = gasnet.segment().as_array("f8", each + 2)
        self.own = self.cells[1:-1]

    def place(self, number: int) -> tuple[int, int]:
        """The rank that holds an element, and where in its segment."""
        rank, place = divmod(number, self.each)
        return rank, 8 * (place + 1)

    def __getitem__(self, number: int) -> float:
        """Read one element, wherever it is."""
        found = np.empty(1)
        gasnet.get(found, *self.place(number))
        return float(found[0])

    def __setitem__(self, number: int, value: float) -> None:
        """Write one element, wherever it is."""
        gasnet.put(*self.place(number), np.array([value]))

    def exchange_borders(self) -> None:
        """Give the neighbours this rank's border values; returns when all ranks have."""
        rank = gasnet.mynode()
        if rank > 0:
            gasnet.put_nbi(rank - 1, 8 * (self.each + 1), self.own[:1])
        if rank < gasnet.nodes() - 1:
            gasnet.put_nbi(rank + 1, 0, self.own[-1:])
        gasnet.wait_syncnbi_puts()  # they are there
        gasnet.barrier()

    def everything(self) -> np.ndarray:
        """All elements: a get for each rank, all at once."""
        found = np.empty((gasnet.nodes(), self.each))
        gasnet.begin_nbi_accessregion()
        for rank in range(gasnet.nodes()):
            gasnet.get_nbi_bulk(found[rank], rank, 8)
        gasnet.wait_syncnb(gasnet.end_nbi_accessregion())
        return found.ravel()


def step(cells: np.ndarray) -> np.ndarray:
    """Each element moves towards the mean of its neighbours."""
    return cells[1:-1] + 0.25 * (cells[:-2] - 2 * cells[1:-1] + cells[2:])


gasnet.init()
gasnet.attach(segment_size=gasnet.PAGE_SIZE)
rod = DistributedArray(EACH)
if gasnet.mynode() == gasnet.nodes() - 1:  # any rank may
    rod[rod.size // 2] = 100.0
gasnet.barrier()

for _ in range(STEPS):
    rod.exchange_borders()
    new = step(rod.cells)
    gasnet.barrier()  # the borders have been read: the next may come
    rod.own[:] = new
gasnet.barrier()

if gasnet.mynode() == 0:
    alone = np.zeros(rod.size + 2)
    alone[1 + rod.size // 2] = 100.0
    for _ in range(STEPS):
        alone[1:-1] = step(alone)
    whole = rod.everything()
    assert np.allclose(whole, alone[1:-1]), "the pieces do not make the whole"
    assert rod[rod.size // 2] == whole[rod.size // 2]
    print(f"{rod.size} elements on {gasnet.nodes()} rank(s), the warmest {whole.max():.3f}")
gasnet.barrier()
