cimport cython

from ompy cimport raw
from ompy.data.request cimport Waitable
from ompy.engine.base cimport Engine

# the module's constants, in C
cdef long long LONG_WAIT
cdef long long LONG_PAUSE
cdef long long SELDOM
cdef long long GLANCE_EVERY
cdef long long GLANCE_AFTER
cdef long long YIELDS_FOR
cdef long long SPINNING_LOOKS
cdef long long YIELDING_LOOKS
cdef long long LOOKS_A_ROUND
cdef long long TURN_EVERY

cdef class RealEngine(Engine):
    cdef object __weakref__
    cdef public object wakeup
    cdef object _bell
    cdef object _driver
    cdef public object _hub
    cdef public bint _hubless
    cdef object _loop_kind
    cdef object _owner
    cdef long long _made_to_park_after
    cdef long long _made_to_spin_for
    cdef long long _park_after
    cdef public object _readers
    cdef long long _nap_at
    cdef int _sleepers
    cdef int _rounds
    cdef int _glances
    cdef long long _glanced
    cdef long long _spin_for
    cpdef long long now(self) except -1
    @cython.locals(events_handled=int)
    cpdef int progress(self) except -1
    @cython.locals(events=int)
    cdef int _poll_seldom(self) except -1
    @cython.locals(now="long long")
    cpdef glance(self)
    @cython.locals(deadline="long long", idle_since="long long", misses=long)
    cpdef bint wait(self, Waitable waitable, long long timeout=*) except -1
    @cython.locals(looks=long)
    cpdef bint look_for(self, memory, long long at, unsigned long long least) except -1
    @cython.locals(now="long long", idle="long long")
    cdef bint _idle(self, Waitable waitable, long misses, long long idle_since, long long deadline) except -1
    cdef _park(self, Waitable waitable, long long idle, long long remaining)
