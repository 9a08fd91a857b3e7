"""The integer constants of the API, with the numbers Open MPI gives them (mpi.h).

The version is the one whose functions are complete: MPI 3.1 (reference mpi4py.md 3).
Error classes are in `ompy.data.errors`.
"""

from __future__ import annotations

from typing import Final

# Wildcards, ranks and colours; source: Open MPI mpi.h
UNDEFINED: Final = -32766
ANY_SOURCE: Final = -1
ANY_TAG: Final = -1
PROC_NULL: Final = -2
ROOT: Final = -4

# Attribute keys; source: Open MPI mpi.h
KEYVAL_INVALID: Final = -1
TAG_UB: Final = 0
IO: Final = 2
WTIME_IS_GLOBAL: Final = 3
APPNUM: Final = 4
LASTUSEDCODE: Final = 5
UNIVERSE_SIZE: Final = 6
WIN_BASE: Final = 7
WIN_SIZE: Final = 8
WIN_DISP_UNIT: Final = 9
WIN_CREATE_FLAVOR: Final = 10
WIN_FLAVOR: Final = 10
WIN_MODEL: Final = 11

# Array order, type classes, distributions; source: Open MPI mpi.h
ORDER_C: Final = 0
ORDER_FORTRAN: Final = 1
ORDER_F: Final = 1
TYPECLASS_LOGICAL: Final = 4
TYPECLASS_INTEGER: Final = 1
TYPECLASS_REAL: Final = 2
TYPECLASS_COMPLEX: Final = 3
DISTRIBUTE_NONE: Final = 2
DISTRIBUTE_BLOCK: Final = 0
DISTRIBUTE_CYCLIC: Final = 1
DISTRIBUTE_DFLT_DARG: Final = -1

# How a datatype was made; source: Open MPI mpi.h
COMBINER_NAMED: Final = 0
COMBINER_DUP: Final = 1
COMBINER_CONTIGUOUS: Final = 2
COMBINER_VECTOR: Final = 3
COMBINER_HVECTOR: Final = 5
COMBINER_INDEXED: Final = 6
COMBINER_HINDEXED: Final = 8
COMBINER_INDEXED_BLOCK: Final = 9
COMBINER_HINDEXED_BLOCK: Final = 18
COMBINER_STRUCT: Final = 11
COMBINER_SUBARRAY: Final = 12
COMBINER_DARRAY: Final = 13
COMBINER_RESIZED: Final = 17
COMBINER_VALUE_INDEX: Final = 19
COMBINER_F90_INTEGER: Final = 16
COMBINER_F90_REAL: Final = 14
COMBINER_F90_COMPLEX: Final = 15

# A status as Fortran integers; source: Open MPI mpi.h
F_SOURCE: Final = 0
F_TAG: Final = 1
F_ERROR: Final = 2
F_STATUS_SIZE: Final = 6

# Results of comparisons, kinds of topologies and splits; source: Open MPI mpi.h
IDENT: Final = 0
CONGRUENT: Final = 1
SIMILAR: Final = 2
UNEQUAL: Final = 3
CART: Final = 1
GRAPH: Final = 2
DIST_GRAPH: Final = 3
UNWEIGHTED: Final = 2
WEIGHTS_EMPTY: Final = 3
COMM_TYPE_SHARED: Final = 0
COMM_TYPE_HW_UNGUIDED: Final = 12
COMM_TYPE_HW_GUIDED: Final = 13
COMM_TYPE_RESOURCE_GUIDED: Final = 14

# Buffered sends; source: Open MPI mpi.h
BSEND_OVERHEAD: Final = 128

# Windows; source: Open MPI mpi.h
WIN_FLAVOR_CREATE: Final = 1
WIN_FLAVOR_ALLOCATE: Final = 2
WIN_FLAVOR_DYNAMIC: Final = 3
WIN_FLAVOR_SHARED: Final = 4
WIN_SEPARATE: Final = 0
WIN_UNIFIED: Final = 1
MODE_NOCHECK: Final = 1
MODE_NOPRECEDE: Final = 2
MODE_NOPUT: Final = 4
MODE_NOSTORE: Final = 8
MODE_NOSUCCEED: Final = 16
LOCK_EXCLUSIVE: Final = 1
LOCK_SHARED: Final = 2

# Files; source: Open MPI mpi.h
MODE_CREATE: Final = 1
MODE_RDONLY: Final = 2
MODE_WRONLY: Final = 4
MODE_RDWR: Final = 8
MODE_DELETE_ON_CLOSE: Final = 16
MODE_UNIQUE_OPEN: Final = 32
MODE_EXCL: Final = 64
MODE_APPEND: Final = 128
MODE_SEQUENTIAL: Final = 256
SEEK_SET: Final = 600
SEEK_CUR: Final = 602
SEEK_END: Final = 604
DISPLACEMENT_CURRENT: Final = -54278278
DISP_CUR: Final = -54278278

# Threads and versions; source: Open MPI mpi.h
THREAD_SINGLE: Final = 0
THREAD_FUNNELED: Final = 1
THREAD_SERIALIZED: Final = 2
THREAD_MULTIPLE: Final = 3
VERSION: Final = 3
SUBVERSION: Final = 1

# Lengths; source: Open MPI mpi.h
MAX_PROCESSOR_NAME: Final = 255
MAX_ERROR_STRING: Final = 255
MAX_PORT_NAME: Final = 1023
MAX_INFO_KEY: Final = 35
MAX_INFO_VAL: Final = 255
MAX_OBJECT_NAME: Final = 63
MAX_DATAREP_STRING: Final = 127
MAX_LIBRARY_VERSION_STRING: Final = 255
MAX_PSET_NAME_LEN: Final = 511
MAX_STRINGTAG_LEN: Final = 1023
