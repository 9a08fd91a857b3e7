cimport cython

from ompy.net cimport vm

# the module's constants, in C
cdef long long _SET_PTRACER

@cython.locals(done="long long", total="long long", moved="long long")
cpdef transfer(bint writes, int process, unsigned long long address, view)
cpdef unsigned long long address_of(view)
