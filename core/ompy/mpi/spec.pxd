cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor, contiguous, lent
from ompy.data.message cimport Message, message_of

# the module's constants, in C
cdef long long ERR_TYPE
cdef dict _LAYOUTS

cpdef Convertor send_convertor(spec)
cpdef Convertor recv_convertor(spec)
@cython.locals(size="long long")
cpdef Message plain(buffer, bint writable)
@cython.locals(size=Py_ssize_t)
cdef _plain_message(spec)
