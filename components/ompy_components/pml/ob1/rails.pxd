cimport cython

from ompy.frameworks.bml cimport BmlEndpoint, Rail, RailArray
from ompy.frameworks.btl cimport BtlModule
from ompy_components.pml.ob1.selection cimport suits_direct

# the module's constants, in C
cdef long long PUT

cdef class Share:
    cdef public object handle
    cdef public long long left
    cdef public Rail rail
    cdef public object remote

cdef class RdmaRails:
    cdef int _most
    cdef bint _use_all
    cdef public bint leave_pinned
    @cython.locals(rail=Rail, weight=double, least=cython.longlong)
    cpdef list direct(self, BmlEndpoint endpoint, long long size, int need)
    cpdef list pipeline(self, BmlEndpoint endpoint)
    @cython.locals(rail=Rail)
    cdef list _usable(self, BmlEndpoint endpoint, int need)

@cython.locals(made=Share)
cpdef Share share_of(Rail rail, long long left, handle)
@cython.locals(rail=Rail)
cpdef Rail find_rail(RailArray array, BtlModule module)
cpdef list heaviest_first(list rails)
@cython.locals(rail=Rail, total=double, left=cython.longlong, part=cython.longlong)
cpdef list share_out(list rails, long long length, long alignment=*)
@cython.locals(share=Share, most=long)
cpdef long get_alignment(list shares) except -1
@cython.locals(share=Share, most=long)
cpdef long put_alignment(list shares) except -1
@cython.locals(share=Share, only=Share, found=Share, most=double, due=double)
cpdef Share next_share(list shares, long alignment, list full)
cpdef long long piece_of(long long left, long long limit, long alignment) except -1
