"""A rank that runs again: with the others or alone, by what its recording says."""
