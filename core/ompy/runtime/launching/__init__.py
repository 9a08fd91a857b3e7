"""The launcher of a job: what it shows, reads, and ends with."""
