"""A whole program in the virtual world: one forked process per rank, one scheduler, one at a time.

`simulated_world.py` forks the ranks and runs them · `stub.py` acts for a rank in the scheduler's
process · `line.py` is between the two · `remote.py` is what a rank has for engine, network and
wire-up · `rank.py` is a rank's process · `stand_ins.py` are its clock and its chance · `sweep.py`
runs many worlds · `shrinking.py` makes a schedule of faults small.
"""
