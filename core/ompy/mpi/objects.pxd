from ompy.data.convertor cimport Convertor, contiguous
from ompy.mpi.arrays cimport decoded, encoded, is_array

# the module's constants, in C
cdef long long THRESHOLD
cdef long long HIGHEST

cpdef Convertor convertor_of(pieces)
