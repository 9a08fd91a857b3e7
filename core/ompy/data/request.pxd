
# the module's constants, in C
cdef long long ANY_SOURCE
cdef long long ANY_TAG
cdef class Waitable:
    cdef public bint complete
    cdef public list _callbacks
    cdef object __weakref__
    cpdef finish(self)
    cpdef notify(self, callback)

cdef class Request(Waitable):
    cdef public long source
    cdef public long tag
    cdef public long long received
    cdef public long long length
    cdef public int error
    cdef public object detail
    cdef public bint cancelled
    cpdef reset(self)
    cpdef fail(self, int error, detail)
