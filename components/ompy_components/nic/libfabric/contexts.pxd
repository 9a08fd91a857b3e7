cdef class Work:
    cdef public unsigned long long address
    cdef public object context
    cdef public object lent
    cdef public object region
    cdef public bint receives

cdef class Contexts:
    cdef public list free
    cdef public dict held
    cdef object _ffi
    cdef list _blocks
    cdef Work take(self)
    cdef posted(self, Work work, context, lent, region, bint receives)
    cdef object ended(self, Work work)
