cimport cython

# compiled as it is, for what is C of `wire`
from ompy.net cimport wire
