"""Every schedule of a program: the choices that matter in a world, made one after the other.

See README.md.
"""
