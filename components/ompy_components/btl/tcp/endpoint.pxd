cimport cython

from ompy.frameworks.btl cimport Descriptor, Endpoint
from ompy.net.pieces cimport without
from ompy_components.btl.tcp.framing cimport FrameReader, frame_word
from ompy_components.btl.tcp.module cimport TcpModule

# the module's constants, in C
cdef long long COMPLETED
cdef long long QUEUED
cdef long long SEND_ALWAYS_CALLBACK
cdef long long UNREACHABLE
cdef long long WOULD_BLOCK
cdef long long BYE
cdef long long DATA
cdef long long FRAME_SIZE
cdef long long JOIN_MAX
cdef long long READS_PER_POLL

cdef class Outgoing:
    cdef public list pieces
    cdef public Descriptor descriptor

cdef class TcpEndpoint(Endpoint):
    cdef public TcpModule _owner
    cdef public FrameReader _reader
    cdef public long long _silent_since
    cdef public object _stream
    cdef public object address
    cdef public object landing
    cdef public object queue
    cdef public object remote
    cdef public object path
    cdef public bint said_bye
    cdef public bint up
    cpdef tuple ends(self)
    @cython.locals(size="long long", pieces=list)
    cpdef int send(self, Descriptor descriptor, int tag) except? -99
    @cython.locals(pieces=list)
    cdef list _framed(self, bytes header, Descriptor descriptor, long long size)
    @cython.locals(left=list)
    cpdef bint send_now(self, int tag, bytes header, payload) except -1
    cpdef long long carry(self) except -1
    cpdef bint lost(self) except -1
    cdef bint _unreachable(self) except -1
    cpdef expect(self)
    cpdef bint has_window(self) except -1
    @cython.locals(taken="long long")
    cdef list _write(self, list pieces)
    @cython.locals(done=int, outgoing=Outgoing, offered=list, descriptor=Descriptor)
    cdef int _flush(self) except -1
    @cython.locals(events=int)
    cpdef int glance(self) except -1
    @cython.locals(events=int)
    cpdef int ready(self, bint readable, bint writable) except -1
    @cython.locals(events=int, _=int, count="long long", reader=FrameReader)
    cdef int _receive(self) except -1
    cdef _want_write(self, bint wanted)
