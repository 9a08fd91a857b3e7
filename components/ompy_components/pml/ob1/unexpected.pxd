cimport cython

from ompy_components.pml.ob1.fragment cimport Fragment

# the module's constants, in C
cdef long long ANY_TAG
cdef long long _SCANNED

cdef class Line:
    cdef public Py_ssize_t count
    cdef public Fragment first
    cdef Fragment _last
    cdef dict _firsts
    cdef dict _lasts
    @cython.locals(last=Fragment)
    cdef append(self, Fragment fragment)
    @cython.locals(fragment=Fragment)
    cdef Fragment find(self, long tag)
    @cython.locals(before=Fragment, after=Fragment)
    cdef remove(self, Fragment fragment)
    @cython.locals(fragment=Fragment)
    cdef _index_all(self)
    @cython.locals(firsts=dict, lasts=dict, last=Fragment)
    cdef _index(self, Fragment fragment)
    @cython.locals(firsts=dict, lasts=dict, following=Fragment)
    cdef _unindex(self, Fragment fragment)

cdef class UnexpectedQueue:
    cdef Line _users
    cdef Line _internal
    cdef public Py_ssize_t count
    @cython.locals(line=Line)
    cpdef append(self, Fragment fragment)
    @cython.locals(line=Line)
    cpdef Fragment find(self, long wanted)
    @cython.locals(line=Line)
    cpdef remove(self, Fragment fragment)
