"""The machines of agents and relays: the ranks of a host, and messages passed on."""
