cpdef long long narrow(number) except? -99
