cimport cython

# compiled as it is: its base is a class that strangers inherit from
