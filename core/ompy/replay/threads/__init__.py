"""Several threads of one rank that call MPI: in which order, recorded and had again."""
