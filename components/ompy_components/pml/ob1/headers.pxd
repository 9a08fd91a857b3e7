cpdef tuple parse(header, int tag, data)
cpdef list parse_registrations(bytes data)
