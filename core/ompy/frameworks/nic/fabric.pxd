cdef class Completion:
    cdef public object context
    cdef public object detail
    cdef public int error
    cdef public long long size

cdef class CompletionQueue:
    cpdef list read(self, int most)

cdef class FabricEndpoint:
    cpdef bint send(self, memory, descriptor, unsigned long long to, context) except -1
    cpdef bint inject(self, memory, unsigned long long to) except -1
    cpdef bint receive(self, memory, descriptor, context) except -1
    cpdef bint write(self, memory, descriptor, unsigned long long to, unsigned long long address, unsigned long long key, context) except -1
    cpdef bint read(self, memory, descriptor, unsigned long long to, unsigned long long address, unsigned long long key, context) except -1
    cpdef bint atomic(self, operand, unsigned long long to, unsigned long long address, unsigned long long key, datatype, op, context) except -1
    cpdef bint fetch_atomic(self, operand, result, descriptor, unsigned long long to, unsigned long long address, unsigned long long key, datatype, op, context) except -1
    cpdef bint compare_atomic(self, operand, compare, result, descriptor, unsigned long long to, unsigned long long address, unsigned long long key, datatype, op, context) except -1
