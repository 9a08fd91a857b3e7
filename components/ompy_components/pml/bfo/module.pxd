from ompy.data.convertor cimport Convertor
from ompy.data.request cimport Request
from ompy.engine.base cimport Engine
from ompy.frameworks.btl cimport BtlModule, Endpoint, ReceiveCallback
from ompy.frameworks.communicator cimport Communicator
from ompy.frameworks.pml cimport MatchedMessage
from ompy_components.pml.bfo.rails cimport Rails
from ompy_components.pml.ob1.module cimport Ob1

# the module's constants, in C
cdef long long ACK
cdef long long ERR_ARG
cdef long long FAREWELL
cdef long long FIN
cdef long long NOTIFY
cdef long long PUT
cdef long long RECV_ERR
cdef long long RESTART_ACK
cdef long long RESTART_NACK
cdef long long SEND
cdef long long UNION_SIZE

cdef class Bfo(Ob1):
    cdef dict _freed
    cdef public object bml
    cdef public object context
    cdef public dict counters
    cdef public Engine engine
    cdef public set farewells
    cdef public dict lost
    cdef public bint parted
    cdef public Rails rails
    cdef public object recovery
    cpdef _make_control(self)
    cpdef _make_rdma(self, values)
    cpdef _make_errors(self)
    cpdef _make_sending(self, values)
    cpdef _make_receiving(self, values)
    cpdef check_limits(self, BtlModule module)
    cpdef fail_peer(self, proc, reason)
    cpdef add_communicator(self, Communicator communicator)
    cpdef remove_communicator(self, Communicator communicator)
    cpdef MatchedMessage improbe(self, Communicator communicator, int source, long tag)
    cpdef MatchedMessage mprobe(self, Communicator communicator, int source, long tag)
    cpdef Request imrecv(self, MatchedMessage message, Convertor convertor)
    cpdef finalize(self)
