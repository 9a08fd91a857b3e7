"""Random MPI programs, drawn from a seed, whose results are compared with a model in NumPy.

All ranks draw the same program from the seed, so each knows what all others give, and what it has
to get; how it calls (types, forms of buffers, ways to wait) each rank draws for itself. Expected is
what MPI's text says, never what another call of ompy returned.
"""
