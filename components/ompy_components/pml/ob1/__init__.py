"""PML ob1: matching, eager and rendezvous protocols over BTLs."""
