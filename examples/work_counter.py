"""GASNet: tasks drawn from a counter that nobody serves, results put together by collectives.

Each rank takes the next range of numbers by an atomic addition to a word of rank 0, whose program
does nothing for it, and counts primes there. In the end the counts meet at rank 0 by a gather, and
two teams, of the ranks that found many and few, elect who found the most by a gather of their own.
"""

from ompy import gasnet

LAST, STEP = 4_000, 100
COUNTED = 0  # where in the segment a rank keeps what it has counted
BY_MINE = gasnet.COLL_IN_MYSYNC | gasnet.COLL_OUT_MYSYNC
HERE = BY_MINE | gasnet.COLL_LOCAL


def is_prime(number: int) -> bool:
    """Whether it has no divisor but itself and 1."""
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def numbers(raw: bytes) -> list[int]:
    """Four bytes for each."""
    return [int.from_bytes(raw[at : at + 4], "little") for at in range(0, len(raw), 4)]


gasnet.init()
gasnet.attach(segment_size=gasnet.PAGE_SIZE)
gasnet.coll_init()
me, ranks = gasnet.mynode(), gasnet.nodes()
counter = gasnet.ad_create(gasnet.DT_I64, gasnet.OP_FADD)

found = 0
while (first := counter.op(0, 8, gasnet.OP_FADD, STEP)) < LAST:
    found += sum(map(is_prime, range(first, first + STEP)))

mine = found.to_bytes(4, "little")
everybody = bytearray(4 * ranks)
gasnet.coll_gather(gasnet.TEAM_ALL, 0, everybody, mine, 4, HERE)

team = gasnet.coll_team_split(gasnet.TEAM_ALL, int(found * ranks > 550), me)
members = bytearray(4 * team.size)
gasnet.coll_gather_all(team, members, mine, 4, HERE)
best = max(range(team.size), key=lambda rank: numbers(members)[rank])
gasnet.segment().memory[COUNTED : COUNTED + 4] = mine
most = bytearray(4)
gasnet.coll_broadcast(team, most, best, COUNTED, 4, HERE)
assert numbers(most) == [max(numbers(members))]
gasnet.coll_team_free(team)

if me == 0:
    assert sum(numbers(everybody)) == 550, "there are 550 primes below 4,000"
    print(f"550 primes found by {ranks} rank(s), drawn from one counter")
gasnet.barrier()
