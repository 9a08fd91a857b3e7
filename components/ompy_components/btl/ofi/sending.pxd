cimport cython

from ompy cimport raw
from ompy.frameworks.btl cimport CompletionCallback
from ompy.frameworks.nic.fabric cimport Completion, FabricEndpoint
from ompy_components.btl.ofi.endpoint cimport OfiEndpoint
from ompy_components.btl.ofi.headers cimport Header, Seal
from ompy_components.btl.ofi.module cimport OfiModule
from ompy_components.btl.ofi.records cimport MessagePool, OfiFragment
from ompy_components.btl.ofi.window cimport Window

# the module's constants, in C
cdef long long BTL_OWNERSHIP
cdef long long OUT_OF_RESOURCE
cdef long long QUEUED
cdef long long UNREACHABLE
cdef long long _BYE

cdef class SendEngine:
    cdef long long _inject_size
    cdef OfiModule _module
    cdef unsigned long long _rank
    cdef Seal _seal
    cdef public long long acknowledgements
    cdef public long long fragments
    cdef public long long injected
    cdef public bint keeping
    cdef public long long outstanding
    cdef public dict owing
    cdef public MessagePool pool
    cdef public bint pressed
    @cython.locals(window=Window, result=int)
    cpdef int offer(self, OfiEndpoint endpoint, OfiFragment fragment, int tag) except? -99
    cpdef release(self, OfiFragment fragment)
    @cython.locals(endpoint=OfiEndpoint, callback=CompletionCallback)
    cpdef complete(self, OfiFragment fragment, int status)
    cpdef bint acknowledge(self, OfiEndpoint endpoint) except -1
    @cython.locals(module=OfiModule, window=Window, header=Header, inject=bint, result=int, context=FabricEndpoint, taken=bint)
    cdef int _post(self, OfiEndpoint endpoint, OfiFragment fragment, long long number, unsigned long long generation) except? -99
    cdef _forget(self, OfiEndpoint endpoint, OfiFragment fragment)
    @cython.locals(endpoint=OfiEndpoint)
    cpdef done(self, OfiFragment fragment, Completion completion)
    @cython.locals(count="long long", fragment=OfiFragment)
    cpdef acknowledged(self, OfiEndpoint endpoint, long long number)
