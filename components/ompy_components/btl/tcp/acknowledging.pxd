cimport cython

from ompy cimport raw
from ompy.engine.base cimport Poller
from ompy.frameworks.btl cimport Descriptor
from ompy_components.btl.tcp.endpoint cimport TcpEndpoint
from ompy_components.btl.tcp.framing cimport FrameReader

# the module's constants, in C
cdef long long QUEUED
cdef long long UNREACHABLE
cdef long long DATA
cdef long long FRAME_SIZE
cdef long long LARGE
cdef long long ACK
cdef long long COUNT_MAX
cdef long long FRAMES_MAX
cdef long long KEPT_OVERHEAD
cdef long long NUMBER_SIZE

cdef class AcknowledgingReader(FrameReader):
    cdef public long long acknowledged
    cdef public bint closed
    cdef public long long taken
    cdef public long long taken_bytes
    @cython.locals(word="unsigned long long", counted="unsigned long long")
    cpdef bint next(self) except -1

cdef class Acknowledger(Poller):
    cdef object _engine
    cdef public list owing
    cdef public long long delay
    cdef public long long bytes_max
    cdef public long long kept_max
    cdef public bint guarded
    @cython.locals(now="long long", endpoint=FailoverEndpoint, waiting=list, paid=int)
    cpdef int poll(self) except -1
    @cython.locals(endpoint=FailoverEndpoint, owing=list)
    cpdef bint arm(self) except -1

cdef class FailoverEndpoint(TcpEndpoint):
    cdef public Acknowledger _acknowledger
    cdef public AcknowledgingReader _counting
    cdef public long long _due
    cdef public object _guard
    cdef public long long _told
    cdef public long long _told_bytes
    cdef public long long acked
    cdef public object bulk
    cdef public object kept
    cdef public long long kept_bytes
    cdef public bint leaving
    cdef public bint mending
    cdef public long long news
    cdef public long long number
    cdef public bint owes
    cdef public long long proposed
    @cython.locals(size="long long", pieces=list)
    cpdef int send(self, Descriptor descriptor, int tag) except? -99
    @cython.locals(left=list, size="long long", joined=bytes)
    cpdef bint send_now(self, int tag, bytes header, payload) except -1
    cpdef bint lost(self) except -1
    cpdef bint has_window(self) except -1
    @cython.locals(left=list)
    cdef _more_bulk(self)
    @cython.locals(done=int)
    cdef int _flush(self) except -1
    cdef _keep(self, entry, long long size)
    @cython.locals(reader=AcknowledgingReader, owed="long long")
    cdef long long _count(self) except -1
    @cython.locals(reader=AcknowledgingReader, owed="long long")
    cpdef acknowledge(self)
    @cython.locals(reader=AcknowledgingReader, large=bint)
    cpdef bint pay(self, long long now) except -1
    @cython.locals(events=int, reader=AcknowledgingReader, owed="long long", much=bint)
    cdef int _receive(self) except -1
    @cython.locals(count="long long", _="long long", size="long long", done=list)
    cdef _take_acknowledgements(self, AcknowledgingReader reader)
