"""Programs of collectives and teams, for any conduit and any world, beside a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from ompy.gasnet import TEAM_ALL, BadArgument, BarrierMismatch, CollFlag, CollHandle

from tests.support.gasnet_programs import pattern, raises

KINDS = ("broadcast", "scatter", "gather", "gather_all", "exchange")
INS = (CollFlag.IN_NOSYNC, CollFlag.IN_MYSYNC, CollFlag.IN_ALLSYNC)
OUTS = (CollFlag.OUT_NOSYNC, CollFlag.OUT_MYSYNC, CollFlag.OUT_ALLSYNC)
SIZES = (0, 1, 8, 63, 200, 600, 3000)
PLACES = 3  # calls under way at a time, each with room of its own in the segment
ROOM = 1 << 14  # bytes for one side of a call: 5 ranks times the largest size
SEGMENT = 2 * ROOM * PLACES
PLAIN = CollFlag.IN_MYSYNC | CollFlag.OUT_MYSYNC | CollFlag.LOCAL


def begin(gasnet: Any, size: int = SEGMENT) -> None:
    gasnet.init()
    gasnet.attach(segment_size=size)
    gasnet.coll_init()


class Drawn(NamedTuple):
    """One call, as all members draw it."""

    kind: str
    team: int
    size: int
    root: int
    flags: CollFlag
    place: int
    key: int

    @property
    def single(self) -> bool:
        return bool(self.flags & CollFlag.SINGLE)


def call(
    gasnet: Any, drawn: Drawn, team: Any, dst: Any, src: Any, *, nb: bool
) -> CollHandle | None:
    """Make it."""
    function = getattr(gasnet, f"coll_{drawn.kind}" + ("_nb" if nb else ""))
    sides = (dst, src)
    if drawn.kind in ("broadcast", "scatter"):
        sides = (dst, drawn.root, src)
    elif drawn.kind == "gather":
        sides = (drawn.root, dst, src)
    found: CollHandle | None = function(team, *sides, drawn.size, drawn.flags)
    return found


def given(drawn: Drawn, rank: int, count: int) -> bytes | None:
    """What a member gives; None: nothing is asked of it."""
    if drawn.kind in ("broadcast", "scatter") and rank != drawn.root:
        return None
    blocks = count if drawn.kind in ("scatter", "exchange") else 1
    return b"".join(pattern(drawn.key + 7 * rank + 31 * to, drawn.size) for to in range(blocks))


def wanted(drawn: Drawn, rank: int, count: int) -> bytes | None:
    """What it gets."""
    size = drawn.size
    if drawn.kind == "broadcast":
        return given(drawn, drawn.root, count)
    if drawn.kind == "scatter":
        source = given(drawn, drawn.root, count)
        assert source is not None
        return source[rank * size : (rank + 1) * size]
    if drawn.kind == "gather" and rank != drawn.root:
        return None
    sources = [given(drawn, other, count) or b"" for other in range(count)]
    if drawn.kind == "exchange":
        sources = [source[rank * size : (rank + 1) * size] for source in sources]
    return b"".join(sources)


def draw(chance: Random, sizes: Sequence[int], place: int, key: int) -> Drawn:
    """A call; `sizes` of the teams."""
    team = chance.randrange(len(sizes))
    mode = chance.choice((CollFlag.SINGLE, CollFlag.LOCAL))
    flags = chance.choice(INS) | chance.choice(OUTS) | mode
    root = chance.randrange(sizes[team])
    return Drawn(chance.choice(KINDS), team, chance.choice(SIZES), root, flags, place, 97 * key)


class Side:
    """Memory of one side of a call: where it is, what is given, what can be seen in it."""

    def __init__(self, gasnet: Any, drawn: Drawn, own: Random, size: int, *, dst: bool) -> None:
        at = 2 * ROOM * drawn.place + (ROOM if dst else 0)
        inside = gasnet.segment().memory[at : at + size]
        way = "offset" if drawn.single else own.choice(("offset", "inside", "outside"))
        self.memory = memoryview(bytearray(size)) if way == "outside" else inside
        self.address = at if way == "offset" else self.memory


def random_collectives(gasnet: Any, seed: int, rounds: int = 6, *, spins: bool = True) -> int:
    """Calls as all draw them alike, up to three under way at a time, on four teams."""
    begin(gasnet)
    me, ranks = gasnet.mynode(), gasnet.nodes()
    chance, own = Random(seed), Random(1000 * seed + me)
    backwards = gasnet.coll_team_create(range(ranks - 1, -1, -1))
    odd = gasnet.coll_team_split(TEAM_ALL, me % 2, me)
    some = gasnet.coll_team_split(backwards, 0 if me < 3 else None, (5 * me) % 7)
    teams = [TEAM_ALL, backwards, odd, some]
    three = sorted(range(min(3, ranks)), key=lambda node: (5 * node) % 7)
    assert (some is None) is (me >= 3)
    assert some is None or list(some.nodes) == three
    made = 0
    for _ in range(rounds):
        under_way = []
        batch = [
            draw(chance, [ranks, ranks, ranks // 2 or 1, len(three)], place, made * 3 + place)
            for place in range(chance.randint(1, PLACES))
        ]
        made += 1
        chosen = [(drawn, teams[drawn.team]) for drawn in batch]
        prepared = [
            (drawn, team, *prepare(gasnet, drawn, team, own))
            for drawn, team in chosen
            if team is not None
        ]
        gasnet.barrier()  # IN_NOSYNC: all is ready everywhere
        for drawn, team, dst, src, expected in prepared:
            nb = len(prepared) > 1 or own.random() < 0.5
            handle = call(gasnet, drawn, team, dst.address, src.address, nb=nb)
            under_way.append((handle, drawn, dst, expected))
        handles = [handle for handle, *_ in under_way if handle is not None]
        finish(gasnet, own.randrange(5 if spins else 3), own, handles)
        if any(drawn.flags & CollFlag.OUT_NOSYNC for drawn in batch):
            gasnet.barrier()
        for _, drawn, dst, expected in under_way:
            if expected is not None:
                assert dst.memory == expected, (seed, me, drawn)
        gasnet.barrier()
    for team in (odd, backwards):
        gasnet.coll_team_free(team)
        raises(BadArgument, gasnet.coll_team_size, team)
    gasnet.barrier()
    return made


def prepare(gasnet: Any, drawn: Drawn, team: Any, own: Random) -> tuple[Side, Side, bytes | None]:
    """The memory of a call, and what is to be in `dst`."""
    count, rank = gasnet.coll_team_size(team), gasnet.coll_team_rank(team)
    drawn_root = drawn._replace(root=drawn.root % count)
    mine, expected = given(drawn_root, rank, count), wanted(drawn_root, rank, count)
    blocks = {"gather": count, "gather_all": count, "exchange": count}.get(drawn.kind, 1)
    src = Side(gasnet, drawn, own, len(mine or b""), dst=False)
    dst = Side(gasnet, drawn, own, drawn.size * blocks, dst=True)
    src.memory[:] = mine or b""
    dst.memory[:] = b"\xee" * len(dst.memory)
    return dst, src, expected


def finish(gasnet: Any, way: int, own: Random, handles: list[CollHandle]) -> None:
    """End them in one of the ways there are; the last two poll."""
    if way == 0:
        own.shuffle(handles)
        for handle in handles:
            gasnet.coll_wait_sync(handle)
    elif way == 1:
        gasnet.coll_wait_sync_all(handles)
    elif way == 2:
        while gasnet.coll_wait_sync_some(handles):
            pass
    elif way == 3:
        for handle in handles:
            while not gasnet.coll_try_sync(handle):
                gasnet.am_poll()
    else:
        while not gasnet.coll_try_sync_all(handles):
            gasnet.am_poll()


def every_call(gasnet: Any, kinds: Sequence[str] = KINDS) -> None:
    """Every kind with every pair of sync flags, both kinds of addresses, small and large."""
    begin(gasnet)
    own = Random(gasnet.mynode())
    key = 0
    for kind in kinds:
        for enter in INS:
            for leave in OUTS:
                for mode in (CollFlag.SINGLE, CollFlag.LOCAL):
                    key += 1
                    size = (1, 300, 2000)[key % 3]
                    root = key % gasnet.nodes()
                    drawn = Drawn(kind, 0, size, root, enter | leave | mode, key % PLACES, key)
                    dst, src, expected = prepare(gasnet, drawn, TEAM_ALL, own)
                    if enter & CollFlag.IN_NOSYNC:
                        gasnet.barrier()
                    call(gasnet, drawn, TEAM_ALL, dst.address, src.address, nb=False)
                    if leave & CollFlag.OUT_NOSYNC:
                        gasnet.barrier()
                    assert expected is None or dst.memory == expected, drawn
                    gasnet.barrier()  # the next one has the same memory


def team_barriers(gasnet: Any) -> None:
    """Barriers of teams: nobody leaves before all have entered; names count; phases."""
    begin(gasnet)
    me, ranks = gasnet.mynode(), gasnet.nodes()
    team = gasnet.coll_team_split(TEAM_ALL, me % 2, me)
    for number in range(4):
        if team.rank == number % team.size:
            gasnet.memset(team.rank2node(0), 8 * team.rank, number + 1, 1)
        gasnet.coll_barrier(team, number, 0)
        seen = bytearray(1)
        gasnet.get(seen, team.rank2node(0), 8 * (number % team.size))
        assert seen == bytes([number + 1])
        gasnet.coll_barrier_notify(team)
        raises(BadArgument, gasnet.coll_barrier_notify, team)
        while not gasnet.coll_barrier_try(team):
            gasnet.am_poll()
        raises(BadArgument, gasnet.coll_barrier_wait, team)
    if team.size > 1:
        raises(BarrierMismatch, gasnet.coll_barrier, team, team.rank, 0)
    gasnet.coll_barrier_notify(team, 3, 0)
    raises(BarrierMismatch, gasnet.coll_barrier_wait, team, 4, 0)
    raises(BadArgument, gasnet.coll_barrier, team, 0, 8)
    assert [gasnet.coll_team_rank2node(team, rank) for rank in range(team.size)] == [
        *range(me % 2, ranks, 2)
    ]
    assert gasnet.coll_team_node2rank(team, me) == team.rank == me // 2
    gasnet.coll_barrier(TEAM_ALL)
    gasnet.barrier()


COLLECTIVES: dict[str, Callable[[Any], Any]] = {
    "every_call": every_call,
    "team_barriers": team_barriers,
    "random_collectives": lambda gasnet: random_collectives(gasnet, 5),
    # for `ompy sim`, where a turn of polling costs as much as a message
    "patient_collectives": lambda gasnet: random_collectives(gasnet, 5, 1, spins=False),
}
