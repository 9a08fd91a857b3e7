"""mpi4py-fft: transforms of an array that is spread over ranks, in slabs and in pencils."""

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

comm = MPI.COMM_WORLD
shape = (12, 10, 8)
whole = np.random.default_rng(3).standard_normal(shape)
for slab in (True, False):
    fft = PFFT(comm, shape, dtype=float, slab=slab)
    data = newDistArray(fft, False)
    data[:] = whole[data.local_slice()]
    image = fft.forward(data.copy(), newDistArray(fft, True))
    expected = np.fft.rfftn(whole) / np.prod(shape)
    assert np.allclose(image, expected[image.local_slice()])
    assert np.allclose(fft.backward(image.copy(), newDistArray(fft, False)), data)
if comm.rank == 0:
    print("fine")
