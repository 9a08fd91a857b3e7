"""From a command line of `ompy-run` to a job."""
