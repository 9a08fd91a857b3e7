cimport cython

from ompy cimport raw
from ompy.data.request cimport Waitable
from ompy.engine.base cimport Engine, Poller
from ompy.frameworks.call_order cimport CallOrder

# the module's constants, in C
cdef long long ERR_PROC_FAILED
cdef long long LINE
cdef long long SHOWN
cdef long long DONE
cdef long long TOTALS
cdef long long PER_SLOT
cdef long long PARKED
cdef long long AWAKE
cdef long long ASLEEP
cdef long long HUNGRY
cdef long long NUMBER
cdef long long TOTAL
cdef long long CALL
cdef long long PATIENCE
cdef long long RESULT
cdef long long ALL_SHOWN
cdef long long ALL_DONE

cpdef long long lines_of(long long words) except -1
cpdef long long slot_size(long long fragment) except -1

cdef class Board(Poller):
    cdef public object memory
    cdef public int rank
    cdef public int ranks
    cdef public int depth
    cdef public long long area
    cdef object _communicator
    cdef Engine _engine
    cdef CallOrder _order
    cdef unsigned long long[::1] _words
    cdef long long _slot
    cdef long _lines
    cdef long _line
    cdef long _own
    cdef long long _headers
    cdef long long _results
    cdef long long _safe
    cdef Waitable _waits
    cdef bint _idle
    cdef int _goal
    cdef unsigned long long _number
    cdef int _lost
    cdef dict _bells
    cpdef long long header(self, long long number) except -1
    cpdef long long result(self, long long number) except -1
    cpdef long long slot(self, long long rank, long long number) except -1
    cpdef long long all_results(self) except -1
    cpdef long long all_slots(self, long long rank) except -1
    @cython.locals(at=long, rank=int, call="unsigned long long")
    cpdef bint agree(self, long long number, unsigned long long total) except -1
    @cython.locals(at=long, slot=long, rank=int, call="unsigned long long", shown=bint)
    cpdef bint join(self, unsigned long long number) except -1
    @cython.locals(at=long, rank=int)
    cpdef lead(self, unsigned long long number)
    @cython.locals(call="unsigned long long")
    cpdef check_result(self, long long number)
    cpdef long long total(self, long long number) except? -99
    @cython.locals(at=long)
    cpdef fill(self, long long number, long long total)
    @cython.locals(at=long, slot=long)
    cpdef show(self, long long number, long long total)
    cpdef finish(self, long long number)
    cpdef bint has_result(self, unsigned long long number) except -1
    @cython.locals(at=long, _=int)
    cpdef bint all_shown(self, unsigned long long number) except -1
    @cython.locals(at=long, _=int, least="long long", done="long long")
    cpdef bint all_done(self, long long number) except -1
    cpdef wait_for_room(self, long long number)
    @cython.locals(rank=int)
    cpdef wait_until_done(self, long long number)
    @cython.locals(rank=int)
    cpdef wait_for_all(self, long long number)
    @cython.locals(at="long long")
    cpdef wait_for_result(self, long long number)
    @cython.locals(at="long long")
    cdef bint _look(self, int rank, int which, long long number) except -1
    @cython.locals(waits=Waitable, engine=Engine)
    cdef _wait(self, int goal, long long number)
    cdef bint _holds(self) except -1
    cpdef int poll(self) except -1
    cpdef bint arm(self) except -1
    cpdef disarm(self)
    @cython.locals(at=long)
    cdef int _find_lost(self) except -2
    cdef list _behind(self)
    cdef _other_call(self, int rank, unsigned long long word)
    cdef _failure(self)
    cpdef wake(self)
    @cython.locals(rank=int)
    cdef _wake(self, unsigned long long state)
    cdef _ring(self, int rank)
    cpdef copy_in(self, long long at, view, long long start, long long size)
    cpdef copy_out(self, long long at, view, long long start, long long size)
    cpdef move(self, long long at, long long start, long long size)
    cpdef bytes_of(self, long long at, long long size)
