cimport cython

from ompy cimport raw
from ompy.trace cimport entries

# the module's constants, in C
cdef long long RECENT

cdef class Trace:
    cdef public bint active
    cdef public bint noting
    cdef public int rank
    cdef public object clock
    cdef bint _monotonic
    cdef list _events
    cdef list _listeners
    cdef object _recent
    cdef long long _noted
    cdef object _writer
    @cython.locals(time="long long")
    cpdef note(self, str what, long long context, long long peer, long long tag, long long sequence, long long size)
