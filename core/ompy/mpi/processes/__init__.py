"""The process as a part of MPI: its begin and end, its options, others that come later."""
