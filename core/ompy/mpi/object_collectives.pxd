cimport cython

from ompy.data.convertor cimport Convertor, GrowingConvertor
from ompy.data.request cimport Request as Operation
from ompy.engine.base cimport Engine
from ompy.frameworks.call_order cimport detail_of
from ompy.frameworks.communicator cimport Communicator
from ompy.mpi.collective_calls cimport barrier
from ompy.mpi.objects cimport convertor_of
from ompy.mpi.state cimport CommState

# the module's constants, in C
cdef long long ERR_PROC_FAILED
cdef long long PATIENCE
cdef long long STANDARD

@cython.locals(communicator=Communicator, engine=Engine)
cdef _wait_for(CommState state, Operation operation, int rank)
@cython.locals(comm=Communicator, convertor=Convertor)
cdef tuple _begin(CommState state, pieces, int target)
@cython.locals(comm=Communicator, convertor=Convertor)
cdef _send(CommState state, pieces, int target)
@cython.locals(comm=Communicator, convertor=GrowingConvertor)
cdef tuple _post(CommState state, int source)
@cython.locals(operation=Operation, convertor=GrowingConvertor)
cdef _finish(CommState state, tuple posted)
@cython.locals(comm=Communicator, convertor=GrowingConvertor)
cdef _receive(CommState state, int source)
@cython.locals(operation=Operation)
cdef _wait(CommState state, sent)
@cython.locals(size=int, place=int, step=int)
cdef _forward(CommState state, pieces, int root)
@cython.locals(size=int, rank=int, step=int)
cdef list _swap(CommState state, messages, own)
@cython.locals(size=int, rank=int, step=int)
cdef _combine(CommState state, obj, op)
