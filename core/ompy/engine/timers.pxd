cdef class Timer:
    cdef public long long deadline
    cdef public object callback
    cpdef cancel(self)

cdef class TimerHeap:
    cdef list _heap
    cdef long long _added
    cdef public bint armed
    cdef public long long due
    cpdef Timer add(self, long long deadline, callback)
    cpdef list pending(self)
    cpdef next_deadline(self)
    cpdef int run(self, long long now) except -1
