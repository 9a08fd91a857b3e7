cimport cython

from ompy.frameworks.bml cimport Rail
from ompy_components.pml.bfo.rails cimport Rails
from ompy_components.pml.ob1.rails cimport Share
from ompy_components.pml.ob1.rdma_put cimport PutRequests, Wanted

# the module's constants, in C
cdef long long CAN_PUT
cdef long long PUT
cdef long long PUT_SIZE
cdef long long REMOTE_WRITE

cdef class Paces:
    cdef dict _late
    cdef long long _least
    cdef dict _sizes
    cdef public long long aim
    cpdef long long size(self, Rail rail) except -1
    @cython.locals(now="long long", late=int)
    cpdef took(self, Rail rail, long long size, long long time)

cdef class BfoPutRequests(PutRequests):
    cdef dict _asked
    cdef int _most_rails
    cdef object bfo
    cdef public Paces paces
    cdef Rails rails
    cdef object receiving
    @cython.locals(rail=Rail, limit="long long", size="long long")
    cpdef long long limit(self, Share share) except -1
    cpdef asked(self, Wanted fragment)
    cpdef finished(self, Wanted fragment, long long size)
