cimport cython

from ompy.data.convertor cimport Convertor
from ompy.frameworks.bml cimport BmlEndpoint, Rail
from ompy.frameworks.btl cimport BtlModule
from ompy.frameworks.proc cimport Proc
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.control cimport Control
from ompy_components.pml.ob1.fragment cimport Fragment, RemoteMemory
from ompy_components.pml.ob1.matching cimport RecvRequest
from ompy_components.pml.ob1.rails cimport Share, find_rail, get_alignment, heaviest_first, put_alignment, share_of, share_out
from ompy_components.pml.ob1.rdma cimport Rdma
from ompy_components.pml.ob1.rdma_get cimport Gets
from ompy_components.pml.ob1.rdma_put cimport Incoming, PutRequests, incoming_by_rdma

# the module's constants, in C
cdef long long GET
cdef long long LOCAL_WRITE
cdef long long REMOTE_WRITE
cdef long long CAN_PUT
cdef long long ACK
cdef long long FLAG_CONTIG
cdef long long FLAG_NORDMA
cdef long long FLAG_PIN
cdef long long FLAG_WAITS
cdef long long PAGE

cdef class RendezvousReceive:
    cdef Control _control
    cdef object _ob1
    cdef Rdma _rdma
    cdef Trace _trace
    cdef public Gets gets
    cdef public PutRequests puts
    @cython.locals(endpoint=BmlEndpoint)
    cpdef answer(self, RecvRequest request, Fragment fragment)
    @cython.locals(incoming=Incoming)
    cpdef ask_for_fragments(self, RecvRequest request, long long offset, long long size)
    cpdef acknowledge_all(self, RecvRequest request, Fragment fragment)
    cdef _send_receive(self, RecvRequest request, Fragment fragment)
    cdef bint _direct_put(self, RecvRequest request, Fragment fragment, BmlEndpoint endpoint, view) except -1
    @cython.locals(end=cython.longlong)
    cdef bint _pipeline(self, RecvRequest request, Fragment fragment, BmlEndpoint endpoint, view) except -1
    @cython.locals(incoming=Incoming)
    cdef _put(self, RecvRequest request, Fragment fragment, list shares, long long end, view)
    @cython.locals(incoming=Incoming)
    cdef _get(self, RecvRequest request, Fragment fragment, BmlEndpoint endpoint, view)
    @cython.locals(module=BtlModule, half=cython.longlong)
    cdef _split(self, RecvRequest request, Incoming incoming, Share share)
    cdef list _shares_to_get(self, BmlEndpoint endpoint, RemoteMemory remote, view)
    @cython.locals(share=Share)
    cdef _add_share(self, list shares, Rail rail, bytes remote, view)
    @cython.locals(proc=Proc)
    cdef BmlEndpoint _endpoint(self, RecvRequest request)
    cdef _decided(self, RecvRequest request, protocol, Fragment fragment)
    cdef _acknowledge(self, RecvRequest request, unsigned long long send_id, long long offset, long long size, int flags)

@cython.locals(share=Share)
cdef _give_parts(list shares, long long length, long alignment)
