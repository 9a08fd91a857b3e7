"""The algorithms of collectives, as schedules; components choose among them."""
