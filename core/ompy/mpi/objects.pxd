cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor, contiguous, lent
from ompy.mpi cimport scalars
from ompy.mpi.arrays cimport decoded, encoded, is_array

# the module's constants, in C
cdef long long HIGHEST

cdef class Pickle:
    cdef object _dumps
    cdef object _loads
    cdef object _module
    cdef bint _ours
    cdef object _protocol
    cdef object _threshold
    cpdef dumps(self, obj)
    cpdef loads(self, data)
    cpdef pieces(self, obj)
    @cython.locals(first=int)
    cpdef load(self, data)
    cdef _unframed(self, view)
    cdef _pickled(self, array)
    cdef _c_pickle(self)

cpdef Convertor convertor_of(pieces)
