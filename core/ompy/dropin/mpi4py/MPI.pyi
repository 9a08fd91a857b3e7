# ruff: noqa: F403
from ompy.MPI import *
from ompy.MPI import __all__ as __all__
from ompy.MPI import _addressof as _addressof
from ompy.MPI import _comm_lock as _comm_lock
from ompy.MPI import _comm_lock_table as _comm_lock_table
from ompy.MPI import _commctx_inter as _commctx_inter
from ompy.MPI import _commctx_intra as _commctx_intra
from ompy.MPI import _datatype_create as _datatype_create
from ompy.MPI import _datatype_decode as _datatype_decode
from ompy.MPI import _handleof as _handleof
from ompy.MPI import _set_abort_status as _set_abort_status
from ompy.MPI import _sizeof as _sizeof
from ompy.MPI import _typealign as _typealign
from ompy.MPI import _typecode as _typecode
from ompy.MPI import _typedict as _typedict
from ompy.MPI import _typedict_c as _typedict_c
from ompy.MPI import _typedict_f as _typedict_f
