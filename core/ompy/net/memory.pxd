cimport cython

from ompy.net cimport vm

@cython.locals(done="long long", total="long long", moved="long long")
cpdef transfer(bint writes, int process, unsigned long long address, view)
cpdef unsigned long long address_of(view)
