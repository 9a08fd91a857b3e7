from ompy.data.request cimport Request as Operation
from ompy.mpi.requeststate cimport RequestState, request_state
from ompy.mpi.state cimport CommState

cpdef request_of(CommState comm, Operation operation, keep, bint receives)
