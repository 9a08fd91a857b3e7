from ompy.data.convertor cimport Convertor, contiguous

# the module's constants, in C
cdef long long THRESHOLD
cdef long long HIGHEST

cpdef Convertor convertor_of(pieces)
