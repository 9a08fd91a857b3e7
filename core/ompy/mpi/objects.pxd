from ompy.data.convertor cimport Convertor, contiguous
from ompy.mpi.arrays cimport decoded, encoded, is_array

cpdef Convertor convertor_of(pieces)
