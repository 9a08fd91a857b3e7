cimport cython

from ompy cimport raw
from ompy.net.pieces cimport without

# the module's constants that nobody imports, in C
cdef long long HEAD_TAG_SIZE
cdef long long LENGTH_SIZE
cdef long long TAG_SIZE
cdef long long NONCE_SIZE
cdef long long _KEY_SIZE

cdef class _Direction:
    cdef object _head
    cdef object _body
    cdef object _cipher
    cdef public long long count
    @cython.locals(length=bytes, digest=bytes)
    cdef bytes _head_of(self, long long size)
    @cython.locals(digest=bytes)
    cdef bytes _tag_of(self, bytes head, body)
    cdef bytes _nonce(self)

cdef class Sealer(_Direction):
    @cython.locals(head=bytes)
    cpdef tuple seal(self, body)

cdef class Opener(_Direction):
    cdef object _memory
    cdef long long _begin
    cdef long long _end
    cdef bint _checked
    cdef str _why
    cdef public object plain
    @cython.locals(held="long long")
    cpdef room(self)
    cpdef received(self, long long count)
    @cython.locals(held="long long", begin="long long", size="long long", body="long long", head=bytes)
    cpdef bint next(self) except -1
    cdef _open(self, bytes head, body, long long tag)

cdef class Writer:
    cdef Sealer _sealer
    cdef object _transmit
    cdef list _rest
    cdef long long _claimed
    @cython.locals(taken="long long", left=list, body=bytes, head=bytes)
    cpdef long long write(self, pieces) except -1
    @cython.locals(count="long long")
    cdef bint _push(self) except -1

@cython.locals(size="long long", found=list)
cdef bytes _first(pieces)
