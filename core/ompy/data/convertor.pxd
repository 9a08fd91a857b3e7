cimport cython

from ompy cimport raw
from ompy.data cimport borrowed

# the module's constants, in C
cdef long long POOLED_FROM

cdef class Convertor:
    cdef public long long size
    cdef object _view
    cpdef whole(self)
    cpdef bind(self, long long length)
    cpdef keep(self, long long offset)
    cpdef long long pack(self, long long offset, target) except -1
    cpdef long long unpack(self, long long offset, source) except -1
    cpdef tail(self)
    cpdef pack_at(self, target, long long at, long long count)
    cpdef long long unpack_from(self, source, long long start, long long count) except -1

cdef class ContiguousConvertor(Convertor):
    cpdef long long pack(self, long long offset, target) except -1
    cpdef long long unpack(self, long long offset, source) except -1
    cpdef pack_at(self, target, long long at, long long count)
    cpdef long long unpack_from(self, source, long long start, long long count) except -1

cdef class LentConvertor(ContiguousConvertor):
    cdef borrowed.Lent _lent
    cdef object _owner
    cpdef whole(self)
    cpdef pack_at(self, target, long long at, long long count)
    cpdef long long unpack_from(self, source, long long start, long long count) except -1

cdef class GrowingConvertor(LentConvertor):
    cpdef owner(self)
    cpdef bind(self, long long length)

cdef class GatherConvertor(Convertor):
    cdef list _pieces
    cdef list _starts
    cpdef long long pack(self, long long offset, target) except -1
    cpdef tail(self)

@cython.locals(made=ContiguousConvertor)
cpdef ContiguousConvertor contiguous(view)
@cython.locals(made=LentConvertor)
cpdef LentConvertor lent(buffer, bint writable)
