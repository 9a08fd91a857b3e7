cimport cython

from ompy.frameworks.nic.fabric cimport FabricEndpoint
from ompy_components.nic.libfabric cimport direct
from ompy_components.nic.libfabric.completions cimport LibfabricQueue
from ompy_components.nic.libfabric.contexts cimport Contexts, Work

# the module's constants, in C
cdef long long EAGAIN
cdef long long ENOMEM
cdef unsigned long long ANYBODY

cdef class LibfabricEndpoint(FabricEndpoint):
    cdef Contexts _contexts
    cdef object _domain
    cdef object _ffi
    cdef object _fi_atomic
    cdef object _fi_compare
    cdef object _fi_fetch
    cdef unsigned long long _fi_inject
    cdef unsigned long long _fi_read
    cdef unsigned long long _fi_recv
    cdef unsigned long long _fi_send
    cdef unsigned long long _fi_write
    cdef public object _library
    cdef LibfabricQueue _queue
    cdef unsigned long long _receiver
    cdef object _rx
    cdef unsigned long long _sender
    cdef object _whole
    cdef public object fid
    cdef bint _refused(self, Work work, long long result, what, tuple lent) except -1
    cdef bint _is_full(self, long long result) except -1
    @cython.locals(work=Work, number="unsigned long long", result="long long")
    cpdef bint send(self, memory, descriptor, unsigned long long to, context) except -1
    @cython.locals(result="long long")
    cpdef bint inject(self, memory, unsigned long long to) except -1
    @cython.locals(work=Work, number="unsigned long long", result="long long", at="unsigned long long")
    cpdef bint receive(self, memory, descriptor, context) except -1
    @cython.locals(work=Work, number="unsigned long long", result="long long", at="unsigned long long")
    cpdef bint write(self, memory, descriptor, unsigned long long to, unsigned long long address, unsigned long long key, context) except -1
    @cython.locals(work=Work, number="unsigned long long", result="long long", at="unsigned long long")
    cpdef bint read(self, memory, descriptor, unsigned long long to, unsigned long long address, unsigned long long key, context) except -1
    @cython.locals(work=Work)
    cpdef bint atomic(self, operand, unsigned long long to, unsigned long long address, unsigned long long key, datatype, op, context) except -1
    @cython.locals(work=Work)
    cpdef bint fetch_atomic(self, operand, result, descriptor, unsigned long long to, unsigned long long address, unsigned long long key, datatype, op, context) except -1
    @cython.locals(work=Work)
    cpdef bint compare_atomic(self, operand, compare, result, descriptor, unsigned long long to, unsigned long long address, unsigned long long key, datatype, op, context) except -1

cdef class ShmEndpoint(LibfabricEndpoint):
    cdef bint _is_full(self, long long result) except -1
    cpdef bint send(self, memory, descriptor, unsigned long long to, context) except -1
