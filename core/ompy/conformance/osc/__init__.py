"""The kit for osc components: windows against what MPI says they are."""
