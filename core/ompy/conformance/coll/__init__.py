"""The kit for coll components: collectives against what MPI says they do."""
