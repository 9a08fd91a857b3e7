from ompy.data.convertor cimport Convertor, contiguous

cpdef Convertor convertor_of(pieces)
