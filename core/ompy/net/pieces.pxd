cimport cython

@cython.locals(left=list)
cpdef list without(list pieces, long long taken)
