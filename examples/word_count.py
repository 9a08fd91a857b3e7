"""Counting words: dictionaries are merged by a reduction of our own."""

from collections import Counter

from mpi4py import MPI

TEXT = """the ring went round and the rank sent on
what the rank had got from the rank before
round and round until the ring was done"""
WORDS = TEXT.replace("\n", " ").split(" ")

comm = MPI.COMM_WORLD
mine = Counter(WORDS[comm.rank :: comm.size])
total = comm.reduce(mine, op=lambda left, right: left + right, root=0)
if comm.rank == 0:
    assert total == Counter(WORDS)
    # words of equal count in alphabetical order: the order they were merged in is no one's promise
    often = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    print(", ".join(f"{word} {count}" for word, count in often[:3]))
