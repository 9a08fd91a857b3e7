cimport cython

# compiled as it is, for its objects' sake
from ompy.net.records cimport Opener, Sealer, Writer
