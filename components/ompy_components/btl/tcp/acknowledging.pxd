cimport cython

from ompy cimport raw
from ompy.engine.base cimport Engine, Poller
from ompy.frameworks.btl cimport Descriptor
from ompy_components.btl.tcp.endpoint cimport TcpEndpoint
from ompy_components.btl.tcp.fifo cimport Fifo
from ompy_components.btl.tcp.framing cimport FrameReader, frame_word

# the module's constants, in C
cdef long long ASKS
cdef long long QUEUED
cdef long long RETURNABLE
cdef long long UNHURRIED
cdef long long UNREACHABLE
cdef long long DATA
cdef long long FRAME_SIZE
cdef long long JOIN_MAX
cdef long long PUT
cdef long long ACK
cdef long long COUNT_MAX
cdef long long FRAMES_MAX
cdef long long KEPT_OVERHEAD

cdef class AcknowledgingReader(FrameReader):
    cdef bint _asks
    cdef bint _counted
    cdef public long long acknowledged
    cdef public bint closed
    cdef public long long taken
    cdef public long long taken_bytes
    cdef public bint wanted
    cpdef bint presses(self) except -1
    @cython.locals(word="unsigned long long", uncounting="unsigned long long", counted="unsigned long long")
    cpdef bint next(self) except -1

cdef class Acknowledger(Poller):
    cdef Engine _engine
    cdef public Fifo owing
    cdef public long long delay
    cdef public long long bytes_max
    cdef public long long kept_max
    @cython.locals(endpoint=FailoverEndpoint, paid=int, _=Py_ssize_t)
    cpdef int poll(self) except -1
    cdef long long now(self) except -1
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
    cdef public Fifo kept
    cdef public long long kept_bytes
    cdef public bint leaving
    cdef public long long news
    cdef public bint owes
    cdef public bint watched
    @cython.locals(size="long long", asks="long long", header=bytes, joined=bytes)
    cpdef int send(self, Descriptor descriptor, int tag) except? -99
    cdef bint _put_out(self, list pieces, entry, long long size) except -1
    @cython.locals(size="long long", joined=bytes)
    cpdef bint send_now(self, int tag, bytes header, payload) except -1
    cpdef bint lost(self) except -1
    cpdef bint has_window(self) except -1
    @cython.locals(left=list)
    cdef _more_bulk(self)
    @cython.locals(done=int)
    cdef int _flush(self) except -1
    cdef _keep(self, entry, long long size)
    cpdef expect(self)
    @cython.locals(reader=AcknowledgingReader, owed="long long")
    cdef long long _count(self) except -1
    @cython.locals(reader=AcknowledgingReader, owed="long long")
    cpdef acknowledge(self)
    @cython.locals(reader=AcknowledgingReader)
    cdef bint pay(self) except -1
    @cython.locals(events=int, reader=AcknowledgingReader, owed="long long", much=bint)
    cdef int _receive(self) except -1
    @cython.locals(count="long long", _="long long", done=list)
    cdef _take_acknowledgements(self, AcknowledgingReader reader)
    @cython.locals(size="long long", descriptor=Descriptor)
    cdef _complete(self, entry)
    cpdef long long carry(self) except -1
