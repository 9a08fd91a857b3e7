cimport cython

from ompy cimport raw
from ompy.frameworks.btl cimport Descriptor, Endpoint
from ompy.frameworks.registration cimport Registration, RegistrationTable
from ompy_components.btl.sm.endpoint cimport SmEndpoint

# the module's constants, in C
cdef long long DESCRIPTOR
cdef long long OFFSET
cdef long long REGION

# the module's constants, in C
cdef long long BAD_PARAM
cdef long long REMOTE_READ
cdef long long REMOTE_WRITE
cdef long long GET_PIECE
cdef long long PUT_PIECE
cdef long long ACCESS
cdef long long ADDRESS
cdef long long IDENTITY
cdef long long LEFT
cdef long long PROBE
cdef long long PROBE_ADDRESS
cdef long long PROCESS
cdef long long SIZE
cdef long long SLOT_WORDS
cdef long long TABLE_BITS
cdef long long NO_SLOT

cdef class RemoteMemory:
    cdef object _module
    cdef object _context
    cdef unsigned long long[::1] _words
    cdef object _layout
    cdef public RegistrationTable _table
    cdef object _emulation
    cdef public bint single_copy
    cdef object _copy
    cdef object _probe
    cdef object _read
    cdef object _write
    cdef bint _forgets
    cdef long _own_line
    cdef long _own_table
    cdef list _free_slots
    @cython.locals(slot=long, at=long, made=Registration)
    cpdef Registration register(self, memory, int access)
    @cython.locals(slot=long, at=long, removed=Registration)
    cpdef deregister(self, handle)
    cpdef int move(self, SmEndpoint endpoint, Descriptor descriptor, unsigned long long identity, long long offset, int access) except? -99
    @cython.locals(at=long, address="unsigned long long", size="long long")
    cdef _copy_once(self, SmEndpoint endpoint, local, long long offset, unsigned long long identity, int access)
    @cython.locals(begin="long long", size="long long")
    cdef bint _copy_mapped(self, process, long at, local, long long offset, int access) except -1
    cdef bint _may_copy(self, SmEndpoint endpoint) except -1
