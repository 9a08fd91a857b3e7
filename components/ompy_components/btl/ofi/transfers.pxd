cimport cython

from ompy cimport raw
from ompy.frameworks.btl cimport CompletionCallback
from ompy.frameworks.nic.fabric cimport Completion, FabricEndpoint
from ompy_components.btl.ofi.endpoint cimport OfiEndpoint
from ompy_components.btl.ofi.module cimport OfiModule
from ompy_components.btl.ofi.records cimport Operation, operation_on
from ompy_components.btl.ofi.registered cimport allows

# the module's constants, in C
cdef long long BAD_PARAM
cdef long long BASE
cdef long long KEY
cdef long long NOT_AVAILABLE
cdef long long NO_ORDER
cdef long long OUT_OF_RESOURCE
cdef long long QUEUED
cdef long long REMOTE_ATOMIC
cdef long long REMOTE_WRITE
cdef long long UNREACHABLE

cdef class TransferEngine:
    cdef OfiModule _module
    cdef bint _plain
    cdef long long _threshold
    cdef public long long atomics
    cdef public long long gets
    cdef public long long outstanding
    cdef public long long puts
    @cython.locals(size="long long", at="unsigned long long", key="unsigned long long", to="unsigned long long", context=FabricEndpoint, taken=bint)
    cpdef int move(self, int access, OfiEndpoint endpoint, Operation operation, unsigned long long offset, local_handle, bytes remote_handle) except? -99
    @cython.locals(operation=Operation, taken=bint)
    cpdef int change(self, OfiEndpoint endpoint, asked, CompletionCallback callback, context) except? -99
    cdef bint _able(self, asked) except -1
    cdef bint _open(self, OfiEndpoint endpoint, Operation operation) except -1
    cdef int _posted(self, Operation operation, bint taken) except? -99
    cdef int _post_failed(self, Operation operation, problem) except? -99
    cdef _forget(self, Operation operation)
    @cython.locals(endpoint=OfiEndpoint, status=int)
    cpdef done(self, Operation operation, Completion completion)
    @cython.locals(endpoint=OfiEndpoint)
    cpdef complete(self, Operation operation, int status)
