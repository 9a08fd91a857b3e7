cimport cython

from ompy cimport raw
from ompy.data.request cimport Waitable
from ompy.engine.lock cimport RankLock
from ompy.engine.timers cimport TimerHeap

cdef class Poller:
    cpdef int poll(self) except -1
    cpdef bint arm(self) except -1
    cpdef disarm(self)

cdef class Engine:
    cdef public bint has_core
    cdef public RankLock lock
    cdef public object random
    cdef public list _pollers
    cdef public list _seldom
    cdef public bint _polling
    cdef public TimerHeap _timers
    cpdef long long now(self) except -1
    cpdef add_poller(self, Poller poller)
    cpdef remove_poller(self, Poller poller)
    @cython.locals(events=int, now="long long")
    cpdef int poll_all(self) except -1
    @cython.locals(poller=Poller, events=int)
    cpdef int poll_these(self, list pollers) except -1
    cpdef int progress(self) except -1
    cpdef glance(self)
    cpdef bint wait(self, Waitable waitable, long long timeout=*) except -1
    cpdef bint look_for(self, memory, long long at, unsigned long long least) except -1
    @cython.locals(poller=Poller)
    cpdef bint arm_pollers(self) except -1
    @cython.locals(poller=Poller)
    cpdef disarm_pollers(self)
