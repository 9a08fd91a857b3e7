from ompy.frameworks.btl cimport BtlModule
from ompy_components.pml.bfo.headers cimport is_behind, is_first_try, newer
from ompy_components.pml.bfo.pieces cimport BfoPutRequests
from ompy_components.pml.ob1.fragment cimport Fragment
from ompy_components.pml.ob1.matching cimport PeerQueue, RecvRequest
from ompy_components.pml.ob1.receiving cimport Receiving

# the module's constants, in C
cdef long long ACK
cdef long long BY_ID
cdef long long ERR_PROC_FAILED
cdef long long MATCH
cdef long long RECV_ERR
cdef long long RESTART_ACK
cdef long long RESTART_NACK
cdef long long RGET_SIZE
cdef long long RNDV_SIZE

cdef class BfoReceiving(Receiving):
    cdef public dict _generations
    cdef public object bfo
    cdef public dict dancing
    cdef public dict probed
    cdef public BfoPutRequests puts
    cdef public dict restarts
    cpdef rndv_arrived(self, data)
    cpdef rget_arrived(self, BtlModule module, data)
    cpdef out_of_turn(self, PeerQueue queue, Fragment fragment)
    cpdef unknown(self, int tag, unsigned long long number)
    cpdef fail_peer(self, proc, reason)
