cimport cython

from ompy cimport raw
from ompy.frameworks.nic.fabric cimport Completion, CompletionQueue
from ompy_components.nic.libfabric cimport direct
from ompy_components.nic.libfabric.contexts cimport Contexts, Work

# the module's constants, in C
cdef long long ENTRY
cdef long long LENGTH
cdef long long EAGAIN
cdef long long EAVAIL

cdef class LibfabricQueue(CompletionQueue):
    cdef object _bytes
    cdef list _closing
    cdef object _descriptor
    cdef object _domain
    cdef object _entries
    cdef object _error
    cdef object _library
    cdef unsigned long long _place
    cdef unsigned long long _read
    cdef object _readerr
    cdef long long _room
    cdef object _strerror
    cdef unsigned long long _where
    cdef public Contexts contexts
    cdef public object fid
    cdef public list own
    @cython.locals(count="long long", done=list)
    cpdef list read(self, int most)
    @cython.locals(work=Work, made=Completion, contexts=Contexts, index="long long", at="long long", done=list)
    cdef list _taken(self, long long count)
