"""The agents: one process on each host of a job, and how they are started."""
