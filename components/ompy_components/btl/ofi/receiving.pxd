cimport cython

from ompy.frameworks.nic.fabric cimport Completion, FabricEndpoint
from ompy_components.btl.ofi.endpoint cimport OfiEndpoint
from ompy_components.btl.ofi.headers cimport Header, Seal
from ompy_components.btl.ofi.module cimport OfiModule
from ompy_components.btl.ofi.records cimport ReceiveBuffer
from ompy_components.btl.ofi.sending cimport SendEngine
from ompy_components.btl.ofi.window cimport Window

# the module's constants, in C
cdef long long HEADER_SIZE
cdef long long ROUND_MAX
cdef long long TAGS
cdef long long _ACK
cdef long long _BYE
cdef long long _FRAGMENT

cdef class ReceiveEngine:
    cdef object _arrived
    cdef list _idle
    cdef OfiModule _module
    cdef Seal _seal
    cdef long long _stale
    cdef public long long failed
    cpdef done(self, ReceiveBuffer buffer, Completion completion)
    @cython.locals(buffer=ReceiveBuffer)
    cpdef repost(self)
    @cython.locals(count="long long", buffer=ReceiveBuffer, _="long long")
    cpdef long long deliver(self) except -1
    @cython.locals(module=OfiModule, header=Header, endpoint=OfiEndpoint, kind="unsigned long long")
    cdef _take(self, message)
    @cython.locals(module=OfiModule, kind="unsigned long long")
    cdef _hear(self, OfiEndpoint endpoint, Header header, fragment)
