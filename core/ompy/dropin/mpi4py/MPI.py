"""Becomes `ompy.MPI`: the import system hands out what it finds in `sys.modules`."""

import sys

import ompy.MPI

ompy.MPI._import_as(__name__)
sys.modules[__name__] = ompy.MPI
