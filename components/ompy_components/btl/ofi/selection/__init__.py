"""Which providers and domains are used, and which module of a peer each of ours talks to."""
