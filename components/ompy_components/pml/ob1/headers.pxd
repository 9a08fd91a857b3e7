cimport cython

from ompy cimport raw
from ompy.frameworks.btl cimport Descriptor

# the module's constants, in C
cdef long long ERR_INTERN
cdef long long _LOW

@cython.locals(kind=int, first="unsigned long long")
cpdef bytes match_words(unsigned long long flags, unsigned long long context_id, long long source, long long tag, unsigned long long sequence)
@cython.locals(kind=int, first="unsigned long long", second="unsigned long long")
cpdef bytes rget_words(unsigned long long flags, unsigned long long context_id, long long source, long long tag, unsigned long long sequence, unsigned long long length, unsigned long long send_id, unsigned long long fragment_id, long long address)
cpdef bytes put_words(unsigned long long flags, unsigned long long send_id, unsigned long long fragment_id, unsigned long long receive_id, unsigned long long offset, unsigned long long address, unsigned long long size)
cpdef bytes fin_words(long long size, unsigned long long fragment_id)
@cython.locals(first="unsigned long long")
cpdef bytes credit_words(unsigned long long flags, unsigned long long window, long long taken, unsigned long long back)
cpdef long long as_signed(long long low) except? -1
cpdef check(int tag, Py_ssize_t size, data)
cpdef tuple parse(header, int tag, data)
@cython.locals(segment=memoryview, size=Py_ssize_t)
cpdef place(Descriptor descriptor, bytes header)
cpdef list parse_registrations(bytes data)
