"""Labelled mpi4py programs: what the checker of `ompy-run --check` has to find, and what not.

`templates/CLASS.txt` has the programs of a class, each with a fault and its mended twin;
`templates/correct-*.txt` have programs that are right and look suspicious. `templates.py` reads
them, `cases.py` makes programs of them.
"""
