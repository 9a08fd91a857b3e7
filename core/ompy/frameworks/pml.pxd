from ompy.data.convertor cimport Convertor
from ompy.data.request cimport Request
from ompy.frameworks.communicator cimport Communicator

# the module's constants, in C
cdef long long ERR_UNSUPPORTED_OPERATION

cdef class MatchedMessage:
    cdef public long source
    cdef public long tag
    cdef public long long length

cdef class Pml:
    cpdef add_communicator(self, Communicator communicator)
    cpdef remove_communicator(self, Communicator communicator)
    cpdef Request isend(self, Communicator communicator, Convertor convertor, int target, long tag, int mode)
    cpdef Request isend_waited(self, Communicator communicator, Convertor convertor, int target, long tag)
    cpdef Request irecv(self, Communicator communicator, Convertor convertor, int source, long tag)
    cpdef Request iprobe(self, Communicator communicator, int source, long tag)
    cpdef Request probe(self, Communicator communicator, int source, long tag)
    cpdef MatchedMessage improbe(self, Communicator communicator, int source, long tag)
    cpdef MatchedMessage mprobe(self, Communicator communicator, int source, long tag)
    cpdef Request imrecv(self, MatchedMessage message, Convertor convertor)
    cpdef cancel(self, Request request)
    cpdef send(self, Communicator communicator, Convertor convertor, int target, long tag, int mode)
    cpdef Request recv(self, Communicator communicator, Convertor convertor, int source, long tag)
    cpdef Request wait(self, Communicator communicator, Request request)
    cpdef finalize(self)

cdef class PmlWrapper(Pml):
    cdef public Pml inner
    cpdef add_communicator(self, Communicator communicator)
    cpdef remove_communicator(self, Communicator communicator)
    cpdef Request isend(self, Communicator communicator, Convertor convertor, int target, long tag, int mode)
    cpdef Request irecv(self, Communicator communicator, Convertor convertor, int source, long tag)
    cpdef Request iprobe(self, Communicator communicator, int source, long tag)
    cpdef Request probe(self, Communicator communicator, int source, long tag)
    cpdef MatchedMessage improbe(self, Communicator communicator, int source, long tag)
    cpdef MatchedMessage mprobe(self, Communicator communicator, int source, long tag)
    cpdef Request imrecv(self, MatchedMessage message, Convertor convertor)
    cpdef cancel(self, Request request)
    cpdef Request wait(self, Communicator communicator, Request request)
    cpdef finalize(self)
