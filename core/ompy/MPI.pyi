# ruff: noqa: N999, A001 - the names of the module it describes
"""What `ompy.MPI` offers, for type checkers and editors."""

from typing import Final

from ompy.mpi.cartesian import Cartcomm as Cartcomm
from ompy.mpi.cartesian import Compute_dims as Compute_dims
from ompy.mpi.cartesian import Distgraphcomm as Distgraphcomm
from ompy.mpi.cartesian import Graphcomm as Graphcomm
from ompy.mpi.cartesian import Topocomm as Topocomm
from ompy.mpi.comm import COMM_NULL as COMM_NULL
from ompy.mpi.comm import Comm as Comm
from ompy.mpi.comm import Intercomm as Intercomm
from ompy.mpi.datatype import Datatype as Datatype
from ompy.mpi.environment import Aint_add as Aint_add
from ompy.mpi.environment import Aint_diff as Aint_diff
from ompy.mpi.environment import Attach_buffer as Attach_buffer
from ompy.mpi.environment import Close_port as Close_port
from ompy.mpi.environment import Detach_buffer as Detach_buffer
from ompy.mpi.environment import Flush_buffer as Flush_buffer
from ompy.mpi.environment import Get_abi_fortran_info as Get_abi_fortran_info
from ompy.mpi.environment import Get_abi_info as Get_abi_info
from ompy.mpi.environment import Get_abi_version as Get_abi_version
from ompy.mpi.environment import Get_hw_resource_info as Get_hw_resource_info
from ompy.mpi.environment import Get_library_version as Get_library_version
from ompy.mpi.environment import Get_processor_name as Get_processor_name
from ompy.mpi.environment import Get_version as Get_version
from ompy.mpi.environment import Iflush_buffer as Iflush_buffer
from ompy.mpi.environment import Lookup_name as Lookup_name
from ompy.mpi.environment import Open_port as Open_port
from ompy.mpi.environment import Pcontrol as Pcontrol
from ompy.mpi.environment import Publish_name as Publish_name
from ompy.mpi.environment import Register_datarep as Register_datarep
from ompy.mpi.environment import Unpublish_name as Unpublish_name
from ompy.mpi.environment import Wtick as Wtick
from ompy.mpi.environment import Wtime as Wtime
from ompy.mpi.environment import _addressof as _addressof
from ompy.mpi.environment import _comm_lock as _comm_lock
from ompy.mpi.environment import _comm_lock_table as _comm_lock_table
from ompy.mpi.environment import _commctx_inter as _commctx_inter
from ompy.mpi.environment import _commctx_intra as _commctx_intra
from ompy.mpi.environment import _datatype_create as _datatype_create
from ompy.mpi.environment import _datatype_decode as _datatype_decode
from ompy.mpi.environment import _handleof as _handleof
from ompy.mpi.environment import _sizeof as _sizeof
from ompy.mpi.environment import _typealign as _typealign
from ompy.mpi.environment import _typecode as _typecode
from ompy.mpi.environment import get_vendor as get_vendor
from ompy.mpi.errhandler import ERRHANDLER_NULL as ERRHANDLER_NULL
from ompy.mpi.errhandler import ERRORS_ABORT as ERRORS_ABORT
from ompy.mpi.errhandler import ERRORS_ARE_FATAL as ERRORS_ARE_FATAL
from ompy.mpi.errhandler import ERRORS_RETURN as ERRORS_RETURN
from ompy.mpi.errhandler import Errhandler as Errhandler
from ompy.mpi.errors import Add_error_class as Add_error_class
from ompy.mpi.errors import Add_error_code as Add_error_code
from ompy.mpi.errors import Add_error_string as Add_error_string
from ompy.mpi.errors import Get_error_class as Get_error_class
from ompy.mpi.errors import Get_error_string as Get_error_string
from ompy.mpi.errors import MPIException
from ompy.mpi.errors import Remove_error_class as Remove_error_class
from ompy.mpi.errors import Remove_error_code as Remove_error_code
from ompy.mpi.errors import Remove_error_string as Remove_error_string
from ompy.mpi.files import FILE_NULL as FILE_NULL
from ompy.mpi.files import File as File
from ompy.mpi.grequest import Grequest as Grequest
from ompy.mpi.group import GROUP_EMPTY as GROUP_EMPTY
from ompy.mpi.group import GROUP_NULL as GROUP_NULL
from ompy.mpi.group import Group as Group
from ompy.mpi.info import INFO_ENV as INFO_ENV
from ompy.mpi.info import INFO_NULL as INFO_NULL
from ompy.mpi.info import Info as Info
from ompy.mpi.intracomm import Intracomm as Intracomm
from ompy.mpi.life import COMM_SELF as COMM_SELF
from ompy.mpi.life import COMM_WORLD as COMM_WORLD
from ompy.mpi.life import Finalize as Finalize
from ompy.mpi.life import Init as Init
from ompy.mpi.life import Init_thread as Init_thread
from ompy.mpi.life import Is_finalized as Is_finalized
from ompy.mpi.life import Is_initialized as Is_initialized
from ompy.mpi.life import Is_thread_main as Is_thread_main
from ompy.mpi.life import Query_thread as Query_thread
from ompy.mpi.life import _set_abort_status as _set_abort_status
from ompy.mpi.markers import BOTTOM as BOTTOM
from ompy.mpi.markers import BUFFER_AUTOMATIC as BUFFER_AUTOMATIC
from ompy.mpi.markers import IN_PLACE as IN_PLACE
from ompy.mpi.markers import BottomType as BottomType
from ompy.mpi.markers import BufferAutomaticType as BufferAutomaticType
from ompy.mpi.markers import InPlaceType as InPlaceType
from ompy.mpi.matched import MESSAGE_NO_PROC as MESSAGE_NO_PROC
from ompy.mpi.matched import MESSAGE_NULL as MESSAGE_NULL
from ompy.mpi.matched import Message as Message
from ompy.mpi.memory import Alloc_mem as Alloc_mem
from ompy.mpi.memory import Free_mem as Free_mem
from ompy.mpi.memory import Get_address as Get_address
from ompy.mpi.memory import buffer as buffer
from ompy.mpi.objects import Pickle as Pickle
from ompy.mpi.objects import pickle as pickle
from ompy.mpi.operation import OP_NULL as OP_NULL
from ompy.mpi.operation import Op as Op
from ompy.mpi.request import REQUEST_NULL as REQUEST_NULL
from ompy.mpi.request import Prequest as Prequest
from ompy.mpi.request import Request as Request
from ompy.mpi.sessions import SESSION_NULL as SESSION_NULL
from ompy.mpi.sessions import Session as Session
from ompy.mpi.status import Status as Status
from ompy.mpi.windows import WIN_NULL as WIN_NULL
from ompy.mpi.windows import Win as Win

Exception = MPIException
memory = buffer
_typedict: Final[dict[str, Datatype]]
_typedict_c: Final[dict[str, Datatype]]
_typedict_f: Final[dict[str, Datatype]]

UNDEFINED: Final[int]
ANY_SOURCE: Final[int]
ANY_TAG: Final[int]
PROC_NULL: Final[int]
ROOT: Final[int]
KEYVAL_INVALID: Final[int]
TAG_UB: Final[int]
IO: Final[int]
WTIME_IS_GLOBAL: Final[int]
APPNUM: Final[int]
LASTUSEDCODE: Final[int]
UNIVERSE_SIZE: Final[int]
WIN_BASE: Final[int]
WIN_SIZE: Final[int]
WIN_DISP_UNIT: Final[int]
WIN_CREATE_FLAVOR: Final[int]
WIN_FLAVOR: Final[int]
WIN_MODEL: Final[int]
ORDER_C: Final[int]
ORDER_FORTRAN: Final[int]
ORDER_F: Final[int]
TYPECLASS_LOGICAL: Final[int]
TYPECLASS_INTEGER: Final[int]
TYPECLASS_REAL: Final[int]
TYPECLASS_COMPLEX: Final[int]
DISTRIBUTE_NONE: Final[int]
DISTRIBUTE_BLOCK: Final[int]
DISTRIBUTE_CYCLIC: Final[int]
DISTRIBUTE_DFLT_DARG: Final[int]
COMBINER_NAMED: Final[int]
COMBINER_DUP: Final[int]
COMBINER_CONTIGUOUS: Final[int]
COMBINER_VECTOR: Final[int]
COMBINER_HVECTOR: Final[int]
COMBINER_INDEXED: Final[int]
COMBINER_HINDEXED: Final[int]
COMBINER_INDEXED_BLOCK: Final[int]
COMBINER_HINDEXED_BLOCK: Final[int]
COMBINER_STRUCT: Final[int]
COMBINER_SUBARRAY: Final[int]
COMBINER_DARRAY: Final[int]
COMBINER_RESIZED: Final[int]
COMBINER_VALUE_INDEX: Final[int]
COMBINER_F90_INTEGER: Final[int]
COMBINER_F90_REAL: Final[int]
COMBINER_F90_COMPLEX: Final[int]
F_SOURCE: Final[int]
F_TAG: Final[int]
F_ERROR: Final[int]
F_STATUS_SIZE: Final[int]
IDENT: Final[int]
CONGRUENT: Final[int]
SIMILAR: Final[int]
UNEQUAL: Final[int]
CART: Final[int]
GRAPH: Final[int]
DIST_GRAPH: Final[int]
UNWEIGHTED: Final[int]
WEIGHTS_EMPTY: Final[int]
COMM_TYPE_SHARED: Final[int]
COMM_TYPE_HW_UNGUIDED: Final[int]
COMM_TYPE_HW_GUIDED: Final[int]
COMM_TYPE_RESOURCE_GUIDED: Final[int]
BSEND_OVERHEAD: Final[int]
WIN_FLAVOR_CREATE: Final[int]
WIN_FLAVOR_ALLOCATE: Final[int]
WIN_FLAVOR_DYNAMIC: Final[int]
WIN_FLAVOR_SHARED: Final[int]
WIN_SEPARATE: Final[int]
WIN_UNIFIED: Final[int]
MODE_NOCHECK: Final[int]
MODE_NOPRECEDE: Final[int]
MODE_NOPUT: Final[int]
MODE_NOSTORE: Final[int]
MODE_NOSUCCEED: Final[int]
LOCK_EXCLUSIVE: Final[int]
LOCK_SHARED: Final[int]
MODE_CREATE: Final[int]
MODE_RDONLY: Final[int]
MODE_WRONLY: Final[int]
MODE_RDWR: Final[int]
MODE_DELETE_ON_CLOSE: Final[int]
MODE_UNIQUE_OPEN: Final[int]
MODE_EXCL: Final[int]
MODE_APPEND: Final[int]
MODE_SEQUENTIAL: Final[int]
SEEK_SET: Final[int]
SEEK_CUR: Final[int]
SEEK_END: Final[int]
DISPLACEMENT_CURRENT: Final[int]
DISP_CUR: Final[int]
THREAD_SINGLE: Final[int]
THREAD_FUNNELED: Final[int]
THREAD_SERIALIZED: Final[int]
THREAD_MULTIPLE: Final[int]
VERSION: Final[int]
SUBVERSION: Final[int]
MAX_PROCESSOR_NAME: Final[int]
MAX_ERROR_STRING: Final[int]
MAX_PORT_NAME: Final[int]
MAX_INFO_KEY: Final[int]
MAX_INFO_VAL: Final[int]
MAX_OBJECT_NAME: Final[int]
MAX_DATAREP_STRING: Final[int]
MAX_LIBRARY_VERSION_STRING: Final[int]
MAX_PSET_NAME_LEN: Final[int]
MAX_STRINGTAG_LEN: Final[int]
SUCCESS: Final[int]
ERR_BUFFER: Final[int]
ERR_COUNT: Final[int]
ERR_TYPE: Final[int]
ERR_TAG: Final[int]
ERR_COMM: Final[int]
ERR_RANK: Final[int]
ERR_REQUEST: Final[int]
ERR_ROOT: Final[int]
ERR_GROUP: Final[int]
ERR_OP: Final[int]
ERR_TOPOLOGY: Final[int]
ERR_DIMS: Final[int]
ERR_ARG: Final[int]
ERR_UNKNOWN: Final[int]
ERR_TRUNCATE: Final[int]
ERR_OTHER: Final[int]
ERR_INTERN: Final[int]
ERR_IN_STATUS: Final[int]
ERR_PENDING: Final[int]
ERR_ACCESS: Final[int]
ERR_AMODE: Final[int]
ERR_ASSERT: Final[int]
ERR_BAD_FILE: Final[int]
ERR_BASE: Final[int]
ERR_CONVERSION: Final[int]
ERR_DISP: Final[int]
ERR_DUP_DATAREP: Final[int]
ERR_FILE_EXISTS: Final[int]
ERR_FILE_IN_USE: Final[int]
ERR_FILE: Final[int]
ERR_INFO_KEY: Final[int]
ERR_INFO_NOKEY: Final[int]
ERR_INFO_VALUE: Final[int]
ERR_INFO: Final[int]
ERR_IO: Final[int]
ERR_KEYVAL: Final[int]
ERR_LOCKTYPE: Final[int]
ERR_NAME: Final[int]
ERR_NO_MEM: Final[int]
ERR_NOT_SAME: Final[int]
ERR_NO_SPACE: Final[int]
ERR_NO_SUCH_FILE: Final[int]
ERR_PORT: Final[int]
ERR_QUOTA: Final[int]
ERR_READ_ONLY: Final[int]
ERR_RMA_CONFLICT: Final[int]
ERR_RMA_SYNC: Final[int]
ERR_SERVICE: Final[int]
ERR_SIZE: Final[int]
ERR_SPAWN: Final[int]
ERR_UNSUPPORTED_DATAREP: Final[int]
ERR_UNSUPPORTED_OPERATION: Final[int]
ERR_WIN: Final[int]
ERR_RMA_RANGE: Final[int]
ERR_RMA_ATTACH: Final[int]
ERR_RMA_FLAVOR: Final[int]
ERR_RMA_SHARED: Final[int]
ERR_PROC_ABORTED: Final[int]
ERR_PROC_FAILED: Final[int]
ERR_PROC_FAILED_PENDING: Final[int]
ERR_REVOKED: Final[int]
ERR_SESSION: Final[int]
ERR_VALUE_TOO_LARGE: Final[int]
ERR_ERRHANDLER: Final[int]
ERR_ABI: Final[int]
ERR_LASTCODE: Final[int]

DATATYPE_NULL: Final[Datatype]
PACKED: Final[Datatype]
BYTE: Final[Datatype]
BFLOAT16_T: Final[Datatype]
CHAR: Final[Datatype]
SIGNED_CHAR: Final[Datatype]
SHORT: Final[Datatype]
INT: Final[Datatype]
LONG: Final[Datatype]
LONG_LONG: Final[Datatype]
UNSIGNED_CHAR: Final[Datatype]
UNSIGNED_SHORT: Final[Datatype]
UNSIGNED: Final[Datatype]
UNSIGNED_LONG: Final[Datatype]
UNSIGNED_LONG_LONG: Final[Datatype]
FLOAT: Final[Datatype]
DOUBLE: Final[Datatype]
LONG_DOUBLE: Final[Datatype]
C_BOOL: Final[Datatype]
C_FLOAT_COMPLEX: Final[Datatype]
C_DOUBLE_COMPLEX: Final[Datatype]
C_LONG_DOUBLE_COMPLEX: Final[Datatype]
WCHAR: Final[Datatype]
FLOAT16_T: Final[Datatype]
INT8_T: Final[Datatype]
INT16_T: Final[Datatype]
INT32_T: Final[Datatype]
INT64_T: Final[Datatype]
UINT8_T: Final[Datatype]
UINT16_T: Final[Datatype]
UINT32_T: Final[Datatype]
UINT64_T: Final[Datatype]
FLOAT32_T: Final[Datatype]
FLOAT64_T: Final[Datatype]
AINT: Final[Datatype]
OFFSET: Final[Datatype]
COUNT: Final[Datatype]
CXX_BOOL: Final[Datatype]
CXX_FLOAT_COMPLEX: Final[Datatype]
CXX_DOUBLE_COMPLEX: Final[Datatype]
CXX_LONG_DOUBLE_COMPLEX: Final[Datatype]
CHARACTER: Final[Datatype]
LOGICAL: Final[Datatype]
INTEGER: Final[Datatype]
REAL: Final[Datatype]
DOUBLE_PRECISION: Final[Datatype]
COMPLEX: Final[Datatype]
DOUBLE_COMPLEX: Final[Datatype]
LOGICAL1: Final[Datatype]
LOGICAL2: Final[Datatype]
LOGICAL4: Final[Datatype]
LOGICAL8: Final[Datatype]
INTEGER1: Final[Datatype]
INTEGER2: Final[Datatype]
INTEGER4: Final[Datatype]
INTEGER8: Final[Datatype]
REAL2: Final[Datatype]
REAL4: Final[Datatype]
REAL8: Final[Datatype]
REAL16: Final[Datatype]
COMPLEX8: Final[Datatype]
COMPLEX16: Final[Datatype]
COMPLEX32: Final[Datatype]
SHORT_INT: Final[Datatype]
INT_INT: Final[Datatype]
LONG_INT: Final[Datatype]
FLOAT_INT: Final[Datatype]
DOUBLE_INT: Final[Datatype]
LONG_DOUBLE_INT: Final[Datatype]
LOGICAL16: Final[Datatype]
INTEGER16: Final[Datatype]
COMPLEX4: Final[Datatype]
UNSIGNED_INT: Final[Datatype]
SIGNED_SHORT: Final[Datatype]
SIGNED_INT: Final[Datatype]
SIGNED_LONG: Final[Datatype]
SIGNED_LONG_LONG: Final[Datatype]
BOOL: Final[Datatype]
C_COMPLEX: Final[Datatype]
TWOINT: Final[Datatype]
SINT8_T: Final[Datatype]
SINT16_T: Final[Datatype]
SINT32_T: Final[Datatype]
SINT64_T: Final[Datatype]
F_BOOL: Final[Datatype]
F_INT: Final[Datatype]
F_FLOAT: Final[Datatype]
F_DOUBLE: Final[Datatype]
F_COMPLEX: Final[Datatype]
F_FLOAT_COMPLEX: Final[Datatype]
F_DOUBLE_COMPLEX: Final[Datatype]

MAX: Final[Op]
MIN: Final[Op]
SUM: Final[Op]
PROD: Final[Op]
LAND: Final[Op]
BAND: Final[Op]
LOR: Final[Op]
BOR: Final[Op]
LXOR: Final[Op]
BXOR: Final[Op]
MAXLOC: Final[Op]
MINLOC: Final[Op]
REPLACE: Final[Op]
NO_OP: Final[Op]
