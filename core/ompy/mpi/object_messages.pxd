cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor, GrowingConvertor
from ompy.data.request cimport Request as Operation
from ompy.mpi.objects cimport convertor_of
from ompy.mpi.state cimport CommState

@cython.locals(target="long long", label="long long")
cpdef send_object(CommState state, obj, dest, tag)
@cython.locals(origin="long long", label="long long", done=Operation, convertor=GrowingConvertor)
cpdef receive_object(CommState state, source, tag, status)
