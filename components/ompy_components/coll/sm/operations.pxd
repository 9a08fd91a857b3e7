cimport cython

from ompy.data.message cimport Message
from ompy.data.operation cimport Operation
from ompy_components.coll.sm.board cimport Board

# the module's constants, in C
cdef long long ERR_TRUNCATE
cdef long long UNIT
cdef long long WRONG
cdef long long BLOCK

cdef class Operations:
    cdef public Board board
    cdef long long _fragment
    cdef long long _window
    cdef long long _number
    @cython.locals(board=Board, number="long long")
    cpdef barrier(self)
    cpdef bcast(self, Message message, int root)
    @cython.locals(board=Board, number="long long", total="long long", start="long long", done="long long", part="long long", slot="long long")
    cdef _send(self, Message message)
    @cython.locals(board=Board, number="long long", total="long long", room="long long", start="long long", done="long long", part="long long", kept="long long", slot="long long")
    cdef _receive(self, Message message, int root)
    @cython.locals(given=Message, start="long long", to="long long", size="long long")
    cpdef reduce(self, Message send, Message receive, Operation operation, int root)
    @cython.locals(given=Message, start="long long", to="long long", size="long long")
    cpdef allreduce(self, Message send, Message receive, Operation operation)
    @cython.locals(board=Board, number="long long")
    cdef _show(self, data, long long start, long long size)
    @cython.locals(board=Board)
    cdef _give(self, data, long long start, long long size, layout, Operation operation)
    @cython.locals(fits=bint)
    cdef _collect(self, data, long long start, room, long long to, long long size, layout, Operation operation)
    @cython.locals(board=Board, number="long long", fits=bint)
    cdef _make(self, room, long long to, long long size, layout, Operation operation)
    @cython.locals(board=Board, number="long long", fits=bint)
    cdef _take(self, room, long long to, long long size, layout, Operation operation)
    @cython.locals(board=Board, number="long long", rank=int, slot="long long")
    cdef bint _combine(self, room, long long to, long long size, layout, Operation operation) except -1
    @cython.locals(board=Board, before="long long", window="long long", number="long long", done="long long", part="long long")
    cdef _share_out(self, data, long long start, room, long long to, long long size, layout, Operation operation)
    @cython.locals(board=Board, unit="long long", share="long long", at="long long", end="long long", block="long long", part="long long", rank=int, result="long long", slot="long long")
    cdef _combine_part(self, long long size, layout, Operation operation)

cdef tuple _packed(Message message)
cdef tuple _room(Message message)
cdef _settle(Message message, room)
cdef _disagreement()
