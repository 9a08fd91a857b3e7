"""The links of a domain: connections to peers, what goes over them, and what breaks."""
