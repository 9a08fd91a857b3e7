"""What ranks ask of the launcher: to start processes, and to be led to others by ports and names.

README.md, "Processes that are started later", has the steps. The launcher's machine and a simulated
world's scheduler both answer by this; it does no input or output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ompy.data.errors import ERR_PORT, ERR_SPAWN
from ompy.frameworks.job import (
    FIRST_BRIDGE,
    LAST_BRIDGE,
    App,
    Job,
    JobWorld,
    Placement,
    app_of,
    world_of,
)
from ompy.runtime.machines.launcher.guests import Guests
from ompy.runtime.machines.launcher.ports import Caller, Ports, Refused

LOCALHOST: Final = "localhost"  # of who asks


class Answer(NamedTuple):
    """What a rank is told that has asked.

    Attributes:
        rank: in the job.
        ask: number of its question.
        code: error class; 0 for none.
        body: the answer, or what is wrong.
    """

    rank: int
    ask: int
    code: int
    body: bytes


class Growth(NamedTuple):
    """The job has one world more, whose ranks are to be started.

    Attributes:
        job: with them.
        world: theirs.
        expendable: which of them the job can do without, until they say something else.
    """

    job: Job
    world: JobWorld
    expendable: tuple[int, ...] = ()


class Discarded(NamedTuple):
    """A world that has not come about: its ranks are to be ended without a word."""

    world: JobWorld


Reply = Answer | Growth | Discarded


class _Spawn:
    """A world that is being made.

        STARTING  its processes start, and who has asked for it waits to hear that all are here
        MEETING   they are, and the parents make a communicator with them
        FAILED    one has ended meanwhile: who has asked hears of it when it says how that went

    Once the parents have their communicator, the world is made, and is nobody's business here.
    """

    def __init__(self, rank: int, ask: int, world: JobWorld) -> None:
        self.rank = rank
        self.ask: int | None = ask  # None once it is answered
        self.world = world
        self.missing = set(range(world.first, world.first + world.size))
        self.why = ""  # it has failed

    def has(self, rank: int) -> bool:
        """Whether it is one of this world."""
        return self.world.first <= rank < self.world.first + self.world.size

    def all_here(self) -> list[Reply]:
        """Nobody is missing."""
        world, ask = self.world, self.ask
        assert ask is not None, "nobody has come twice"
        self.ask = None
        told = {"first": world.first, "size": world.size, "bridge": world.bridge}
        return [Answer(self.rank, ask, 0, json.dumps(told).encode())]

    def failed(self, rank: int, why: str) -> list[Reply]:
        """One could not be started, or has ended, so none is to be."""
        if self.why:
            return []
        world, ask = self.world, self.ask
        place = rank - world.first
        self.why = f"rank {place} of {world.size} could not be started: {why}"
        said = [] if ask is None else [Answer(self.rank, ask, ERR_SPAWN, self.why.encode())]
        return [Discarded(world), *said]


class Asked:
    """What has been asked in one job.

    Attributes:
        job: with all worlds that were added.
        guests: which of its hosts are guests'.
    """

    def __init__(self, job: Job) -> None:
        """Nothing has been asked."""
        self.job = job
        self.guests = Guests()
        self._spawns: list[_Spawn] = []
        self._ports = Ports(job.job_id)
        self._bridges = 0
        self._turn = 0  # which host is next
        self._lost: set[int] = set()  # hosts on which nothing can be started any more

    def heard(self, rank: int, header: Mapping[str, Any], body: bytes) -> list[Reply]:
        """A rank asks something.

        Args:
            rank: in the job.
            header: its number, what it is, and what belongs to that.
            body: more of that.
        """
        ask, what = header["ask"], header["what"]
        try:
            match what:
                case "spawn":
                    return self._spawn(rank, ask, json.loads(body))
                case "accept" | "connect":
                    return self._meet(what, header["port"], Caller(rank, ask, json.loads(body)))
                case "made":
                    return self._made(rank, ask, header["first"], header["why"])
                case _:
                    others, said = self._named(rank, what, header)
                    return [*others, Answer(rank, ask, 0, said.encode())]
        except Refused as problem:
            return [Answer(rank, ask, problem.code, str(problem).encode())]

    def _named(
        self, rank: int, what: str, header: Mapping[str, Any]
    ) -> tuple[Iterable[Reply], str]:
        """What is asked of ports and names: what others hear of that, and what the rank does."""
        match what:
            case "open":
                return (), self._ports.open_port(rank)
            case "close":
                return _closed(self._ports.close_port(header["port"])), ""
            case "withdraw":
                return self._withdrawn(header["port"], rank, header["of"]), ""
            case "publish":
                self._ports.publish_name(header["service"], header["port"], rank)
            case "unpublish":
                self._ports.unpublish_name(header["service"], header["port"])
            case "lookup":
                return (), self._ports.lookup_name(header["service"])
            case _:
                raise AssertionError(f"nobody asks {what}")
        return (), ""

    def _bridge(self) -> int:
        """The next one; so many are not in use at a time."""
        self._bridges += 1
        return FIRST_BRIDGE + (self._bridges - 1) % (LAST_BRIDGE - FIRST_BRIDGE + 1)

    # ports

    def _meet(self, what: str, port: str, caller: Caller) -> list[Reply]:
        find = self._ports.accept_at if what == "accept" else self._ports.connect_to
        other = find(port, caller)
        if other is None:
            return []
        bridge = self._bridge()
        self.guests.met(self.job, (caller.ranks, other.ranks))
        return [_led(caller, other, bridge), _led(other, caller, bridge)]

    def _withdrawn(self, port: str, rank: int, of: int) -> list[Reply]:
        """Who connects has waited for long enough. If it is too late for that, it has its answer.

        So both sides hear the same: either of each other, or nothing and that nobody accepts.
        """
        if not self._ports.withdraw(port, rank, of):
            return []
        text = f"port {port!r}: nobody has accepted there in time"
        return [Answer(rank, of, ERR_PORT, text.encode())]

    def gone(self, rank: int) -> list[Reply]:
        """A rank has ended, and takes along what it has asked for."""
        orphans = [spawn for spawn in self._spawns if spawn.rank == rank]
        self._spawns = [spawn for spawn in self._spawns if spawn.rank != rank]
        lost = [Discarded(spawn.world) for spawn in orphans if not spawn.why]
        return [*lost, *_closed(self._ports.gone(rank))]

    # processes

    def add_guest(self, host: str, apps: Sequence[App]) -> Growth:
        """Ranks of another launcher join the job, on a host of their own."""
        self.job, world = self.guests.added_to(self.job, host, apps)
        return Growth(self.job, world)

    def _spawn(self, rank: int, ask: int, request: Mapping[str, Any]) -> list[Reply]:
        """Add a world to the job.

        Raises:
            Refused: ERR_SPAWN, its ranks cannot be placed.
        """
        job = self.job
        apps = [app_of(app) for app in request["apps"]]
        hosts = [self._nodes(rank, app["hosts"]) for app in request["apps"]]
        first = len(job.placements)
        size = sum(app.ranks for app in apps)
        parents = tuple(request["parents"])
        world = JobWorld(first, size, len(job.apps), parents, rank, self._bridge())
        placements = self._place(apps, hosts, world, job.placements[rank].node)
        self.job = job.grown(apps, placements, world)
        self._spawns.append(_Spawn(rank, ask, world))
        free = [bool(app.get("expendable")) for app in request["apps"]]
        expendable = tuple(place.rank for place in placements if free[place.app - world.app])
        return [Growth(self.job, world, expendable)]

    def _nodes(self, rank: int, names: Sequence[str]) -> list[int]:
        """The hosts that are named; all of the job's where none is."""
        known = self.job.hosts
        own = self.job.placements[rank].node
        for name in names:
            if name not in known and name != LOCALHOST:
                text = f"host {name!r} is none of this job's, which are {', '.join(known)}"
                raise Refused(ERR_SPAWN, text)
            if name != LOCALHOST and known.index(name) in self._lost:
                raise Refused(ERR_SPAWN, f"host {name!r} is lost")
        return [own if name == LOCALHOST else known.index(name) for name in names]

    def _place(
        self, apps: Sequence[App], hosts: Sequence[Sequence[int]], world: JobWorld, own: int
    ) -> list[Placement]:
        """In turn on the hosts that are named for a program, else on all; a guest's on its own."""
        counts = [0] * len(self.job.hosts)
        for placement in self.job.placements:
            counts[placement.node] += 1
        made: list[Placement] = []
        for number, (app, named) in enumerate(zip(apps, hosts, strict=True)):
            for index in range(app.ranks):
                node = named[index % len(named)] if named else self._next_host(own)
                rank = world.first + len(made)
                made.append(Placement(rank, world.app + number, node, counts[node]))
                counts[node] += 1
        return made

    def _next_host(self, own: int) -> int:
        while own not in self.guests.nodes:
            self._turn += 1
            node = (self._turn - 1) % len(self.job.hosts)
            if node not in self._lost | self.guests.nodes:
                return node
        return own

    def lose_hosts(self, nodes: Iterable[int]) -> list[Reply]:
        """Hosts are lost: nothing is started there, and what was to come from there does not."""
        self._lost.update(nodes)
        placed, replies = self.job.placements, list[Reply]()
        for spawn in list(self._spawns):
            ranks = range(spawn.world.first, spawn.world.first + spawn.world.size)
            on_it = [rank for rank in ranks if placed[rank].node in self._lost]
            if on_it:
                replies += self._fail(spawn, on_it[0], "its host is lost")
        return replies

    def attached(self, rank: int) -> list[Reply]:
        """A process has made itself known as this rank."""
        spawn = self._of(rank)
        if spawn is None or spawn.why or not spawn.missing:
            return []
        spawn.missing.discard(rank)
        return [] if spawn.missing else spawn.all_here()

    def unstarted(self, rank: int, why: str) -> list[Reply] | None:
        """It could not be started. None: it is none of a world that came later."""
        spawn = self._of(rank)
        if spawn is None:
            return None if rank < self.job.worlds[0].size else []
        return self._fail(spawn, rank, why)

    def ended(self, rank: int, why: str) -> list[Reply] | None:
        """Its process has ended, however that was. None: its world has been made, or has failed."""
        spawn = self._of(rank)
        return None if spawn is None or spawn.why else self._fail(spawn, rank, why)

    def is_being_made(self, rank: int) -> bool:
        """Whether the end of this rank is no failure of the job: its world has not been made."""
        return self._of(rank) is not None

    def _made(self, rank: int, ask: int, first: int, why: str) -> list[Reply]:
        """Who has asked for a world says that it has a communicator with it, or why it has not.

        If a process of that world has ended meanwhile, it hears of that. Else the world is made.
        """
        spawn = self._of(first)
        assert spawn is not None, f"there is no world of rank {first} to be made"
        known, missed = bool(spawn.why), list[Reply]()
        if why and not known:
            spawn.why, missed = f"they cannot be reached: {why}", [Discarded(spawn.world)]
        self._spawns.remove(spawn)
        code = ERR_SPAWN if spawn.why else 0
        return [*missed, Answer(rank, ask, code, spawn.why.encode())]

    def _fail(self, spawn: _Spawn, rank: int, why: str) -> list[Reply]:
        """A world is not to be; if its root has not been told of a failure, that is kept."""
        waits = spawn.ask is None
        replies = spawn.failed(rank, why)
        if not waits:
            self._spawns.remove(spawn)
        return replies

    def _of(self, rank: int) -> _Spawn | None:
        return next((spawn for spawn in self._spawns if spawn.has(rank)), None)


def packed_world(job: Job, world: JobWorld) -> bytes:
    """The last world of a job, for those who have all the others."""
    told = {
        "apps": [app._asdict() for app in job.apps_of(world)],
        "placements": [list(placement) for placement in job.placements[world.first :]],
        "hosts": list(job.hosts),
        "world": world._asdict(),
    }
    return json.dumps(told, separators=(",", ":")).encode()


def widened(job: Job, packed: bytes) -> Job:
    """A job with the world that `packed_world` has packed."""
    told = json.loads(packed)
    placements = [Placement(*row) for row in told["placements"]]
    apps, hosts = [app_of(app) for app in told["apps"]], told["hosts"][len(job.hosts) :]
    return job.grown(apps, placements, world_of(told["world"]), hosts)


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as runs: each, and how often it comes."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][0] == number:
            found[-1] = (number, found[-1][1] + 1)
        else:
            found.append((number, 1))
    return found


def _led(caller: Caller, other: Caller, bridge: int) -> Answer:
    told = {"ranks": list(other.ranks), "root": other.rank, "bridge": bridge}
    return Answer(caller.rank, caller.ask, 0, json.dumps(told).encode())


def _closed(callers: Iterable[Caller]) -> Iterator[Answer]:
    for caller in callers:
        yield Answer(caller.rank, caller.ask, ERR_PORT, b"the port was closed meanwhile")
