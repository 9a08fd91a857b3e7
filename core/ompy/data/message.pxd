cimport cython

from ompy.data.convertor cimport Convertor

cdef class Message:
    cdef public object memory
    cdef public long long origin
    cdef public long long count
    cdef public object layout
    cpdef long long place(self) except? -1
    cpdef Convertor convertor(self)
    cpdef bytearray packed(self)
    cpdef store(self, packed)

@cython.locals(made=Message)
cpdef Message message_of(memory, long long origin, long long count, layout)
