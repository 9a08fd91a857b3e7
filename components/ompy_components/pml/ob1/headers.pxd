from ompy cimport raw

cpdef bytes match_words(unsigned long long flags, unsigned long long context_id, unsigned long long source, long long tag, unsigned long long sequence)
cpdef long long as_signed(long long low) except? -1
cpdef check(int tag, Py_ssize_t size, data)
cpdef tuple parse(header, int tag, data)
cpdef list parse_registrations(bytes data)
