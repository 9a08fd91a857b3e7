cimport cython

from ompy.frameworks.bml cimport BmlEndpoint, Rail
from ompy.frameworks.btl cimport BtlModule, ErrorCallback
from ompy.frameworks.proc cimport Proc

cdef class Rails(ErrorCallback):
    cdef dict _latest
    cdef dict _lost
    cdef object bfo
    cpdef bint is_lost(self, Proc proc, BtlModule module) except -1
    @cython.locals(endpoint=BmlEndpoint)
    cpdef bint several(self, Proc proc) except -1
    cpdef failed(self, BtlModule module, int flags, proc, reason)
    cpdef returned(self, BtlModule module, proc, int tag, fragment)
    cpdef healed(self, BtlModule module, proc)
    cpdef note_bytes(self, Proc proc, long long count)
