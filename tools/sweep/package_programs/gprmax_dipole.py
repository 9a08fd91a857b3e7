"""gprMax: the field of a dipole over a box, whose space ranks divide among them."""

import os
import shutil
import tempfile

import gprMax
import h5py
import numpy as np
from mpi4py import MPI

MODEL = """\
#title: a dipole over a box
#domain: 0.060 0.060 0.060
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 9e-10
#waveform: gaussiandot 1 4e9 pulse
#hertzian_dipole: z 0.030 0.030 0.040 pulse
#rx: 0.020 0.020 0.040
#material: 6 0 1 0 half
#box: 0 0 0 0.060 0.060 0.030 half
"""
comm = MPI.COMM_WORLD


def field(folder, name, **more):
    """What the receiver sees."""
    output = os.path.join(folder, name)
    words = {"outputfile": output, "hide_progress_bars": True, "log_level": 50}
    gprMax.run(inputfile=os.path.join(folder, "model.in"), **words, **more)
    if comm.rank == 0:
        with h5py.File(f"{output}.h5") as found:
            return {part: values[:] for part, values in found["rxs/rx1"].items()}
    return {}


folder = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
if comm.rank == 0:
    with open(os.path.join(folder, "model.in"), "w") as written:
        written.write(MODEL)
comm.Barrier()
together = field(folder, "together", mpi=[2, 2, 1])
if comm.rank == 0:
    alone = field(folder, "alone")
    assert together.keys() == alone.keys()
    assert np.abs(alone["Ez"]).max() > 0
    for part, values in alone.items():
        assert np.allclose(together[part], values, rtol=1e-5, atol=1e-6 * np.abs(values).max())
    shutil.rmtree(folder)
    print("fine")
