"""Groups of two worlds that come together: `Spawn`, and the parents in the children's `Init`.

Both sides make one communicator between their groups. Their leaders meet over a bridge, whose
context id the launcher has given to both (`runtime/README.md`, "started later").
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import index
from os import PathLike
from typing import Any, AnyStr, Final, NamedTuple

from ompy.data.errors import ERR_ARG, ERR_INFO_VALUE, ERR_SPAWN, MPIError
from ompy.frameworks.collectives import patience
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.leaders import swap_messages
from ompy.frameworks.job import App
from ompy.frameworks.needs import Need
from ompy.frameworks.proc import Proc
from ompy.mpi.communicators.between import Leaders, connect
from ompy.mpi.communicators.context_agreement import exchange_values
from ompy.mpi.info import Info
from ompy.mpi.point_to_point.peers import check_root
from ompy.mpi.state import CommState, World

EXPENDABLE: Final = "ompy_expendable"  # info key: the job can do without such a process
PARENT_NAME: Final = "MPI_COMM_PARENT"  # reference: Open MPI's name of it
_BRIDGE_TAG: Final = 0  # arbitrary: a bridge has no other messages
# keys that name hosts which the job does not have; Open MPI's
_OTHER_HOSTS: Final = ("hostfile", "add-host", "add-hostfile")


class Program(NamedTuple):
    """One that is to be started.

    Attributes:
        command: name of it, or path.
        arguments: of it.
        processes: how many.
        info: hints.
    """

    command: str
    arguments: tuple[str, ...]
    processes: int
    info: Info


def programs_of(
    commands: Sequence[PathLike[AnyStr] | str | bytes],
    arguments: Sequence[Sequence[str]] | str | bytes | None,
    counts: Sequence[int] | int | None,
    infos: Sequence[Info] | Info | None,
) -> list[Program]:
    """The programs of a `Spawn_multiple`: for each command what is at its place, or what all have.

    Raises:
        ValueError: there are not as many of one as of the other.
        MPIError: ERR_ARG, there is no command.
    """
    if isinstance(commands, str | bytes) or hasattr(commands, "__fspath__"):
        raise ValueError("several commands are expected, not one path")
    names = [os.fsdecode(command) for command in commands]
    if not names:
        raise MPIError(ERR_ARG, "there is no command")
    size = len(names)
    words = _for_each(arguments, size, (str, bytes, type(None)))
    numbers = _for_each(1 if counts is None else counts, size, int)
    hints = _for_each(Info() if infos is None else infos, size, Info)
    return [
        Program(name, _words(theirs), index(number), info)
        for name, theirs, number, info in zip(names, words, numbers, hints, strict=True)
    ]


def _for_each(given: Any, size: int, single: Any) -> list[Any]:
    if isinstance(given, single):
        return [given] * size
    found = list(given)
    if len(found) != size:
        raise ValueError(f"expecting {size} items, got {len(found)}")
    return found


def counts_of(commands: Sequence[Any] | None, counts: Sequence[int] | int | None) -> list[int]:
    """How many processes of each program there are, as a member other than the root may say it."""
    if counts is None or isinstance(counts, int):
        return [1 if counts is None else counts] * len(commands or ())
    return [index(count) for count in counts]


def _words(arguments: Iterable[str] | str | bytes | None) -> tuple[str, ...]:
    if arguments is None:
        return ()
    single = isinstance(arguments, str | bytes)
    words: Any = (arguments,) if single else arguments
    return tuple(map(os.fsdecode, words))


def spawn(state: CommState, root: int, programs: Callable[[], list[Program]]) -> CommState:
    """Start processes; all members of a communicator call it.

    Args:
        state: the communicator; the call has begun in it.
        root: whose programs are started.
        programs: makes them; asked at the root alone.

    Returns:
        The communicator between the members and the new processes.

    Raises:
        MPIException: ERR_SPAWN, they cannot be started; ERR_ARG, what is asked for makes no sense.
    """
    check_root(state, root)
    told = json.loads(decided(state, root, partial(_started, state, programs)))
    context, first = state.world.context, told["first"]
    procs = [context.proc(number) for number in range(first, first + told["size"])]
    with _leaders(state, root, told["bridge"], procs[0]) as leaders:
        made, problem = _connected(state, leaders, procs)
        wrong = _settled(state, root, first, problem)
        if made is not None and not wrong:
            with suppress(MPIError):  # the job's business is what becomes of them from now on
                leaders.ask(b"")
            return made
    if made is not None:
        state.world.process.release(made.communicator)
    raise state.fail(ERR_SPAWN, wrong or problem)


def _connected(
    state: CommState, leaders: Leaders, procs: Sequence[Proc]
) -> tuple[CommState | None, str]:
    """The communicator with the new processes; or why there is none."""
    try:
        return connect(state, leaders, procs, ""), ""
    except MPIError as problem:
        patience.abandon(state.communicator, state.communicator.order.tag(), problem)
        return None, str(problem)


def _settled(state: CommState, root: int, first: int, problem: str) -> str:
    """Whether the new processes are ranks of the job from now on: what the launcher says to that.

    If one of them has ended before this moment, none of them is. From then on the end of one is a
    failure of the job, as that of any other rank.

    Args:
        state: the communicator.
        root: who has asked for them.
        first: the first of them, in the job.
        problem: why there is no communicator with them, if there is none.

    Returns:
        What is wrong, if they are not; the same at all members.
    """
    communicator = state.communicator
    # another tag: the messages of what came before may have been given up
    communicator.order.begin(KINDS["Spawn"], root)
    said = b""
    if communicator.rank == root:
        try:
            answered(state.world, "made", {"first": first, "why": problem})
        except MPIError as error:
            said = error.detail.encode()
    tag, members = communicator.order.tag(), range(communicator.size)
    return bytes(state.call(exchange_values, communicator, members, tag, said)[root]).decode()


def decided(state: CommState, root: int, make: Callable[[], bytes]) -> bytes:
    """What the root makes, when all members are ready to meet processes of other worlds.

    Raises:
        MPIException: it could not.
    """
    communicator, world = state.communicator, state.world
    tag, members = communicator.order.tag(), range(communicator.size)
    state.call(world.process.expect_others)
    state.call(exchange_values, communicator, members, tag, b"")
    code, made = 0, b""
    if communicator.rank == root:
        try:
            made = make()
        except MPIError as problem:
            code, made = problem.code, problem.detail.encode()
        except Exception as problem:  # an argument that makes no sense; the others are told, too
            said = bytes((ERR_ARG,)) + str(problem).encode()
            state.call(exchange_values, communicator, members, tag, said)
            raise
    said = bytes((code,)) + made
    found = state.call(exchange_values, communicator, members, tag, said)[root]
    if found[0]:
        raise state.fail(found[0], found[1:].decode())
    return bytes(found[1:])


def answered(
    world: World,
    what: str,
    header: dict[str, Any],
    body: bytes = b"",
    need: Need | None = None,
    patience: int = -1,
) -> bytes:
    """What the launcher answers; the rank makes progress meanwhile.

    Args:
        world: this rank.
        what: is asked.
        header: what belongs to that.
        body: more of it.
        need: what others have to do before it does.
        patience: nanoseconds after which a `connect` is withdrawn; negative for never.

    Raises:
        MPIError: as it says.
    """
    ask = partial(_ask, world, what, body=body, need=need, patience=patience)
    in_front = world.process.answers_in_front
    return ask(header) if in_front is None else in_front(what, header, ask)


def _ask(
    world: World,
    what: str,
    header: dict[str, Any],
    *,
    body: bytes,
    need: Need | None,
    patience: int,
) -> bytes:
    wireup, engine = world.context.wireup, world.engine
    with engine.lock:
        inquiry = wireup.ask_launcher(what, header, body)
        inquiry.needed = None if patience >= 0 else need  # who gives up needs nobody
    if not engine.wait(inquiry, patience):
        with engine.lock:
            wireup.ask_launcher("withdraw", {"port": header["port"], "of": inquiry.number})
        engine.wait(inquiry)  # it is told that nobody accepts, or whom it meets after all
    if inquiry.error:
        raise MPIError(inquiry.error, inquiry.detail)
    return inquiry.answer


def joined(
    state: CommState, leader: int, bridge: int, procs: Sequence[Proc], other: Proc, name: str = ""
) -> CommState:
    """The communicator between this group and another, whose leaders are told of each other.

    Args:
        state: of this group.
        leader: rank in it.
        bridge: context id for the leaders.
        procs: the other group.
        other: its leader.
        name: for messages to people.

    Raises:
        MPIError: it cannot be made.
    """
    with _leaders(state, leader, bridge, other) as leaders:
        return connect(state, leaders, procs, name)


@contextmanager
def _leaders(state: CommState, leader: int, bridge: int, other: Proc) -> Iterator[Leaders]:
    """How this group and another talk, over a bridge of their leaders; arguments as of `joined`."""
    communicator, process = state.communicator, state.world.process
    tag = communicator.order.tag()
    if communicator.rank != leader:
        yield Leaders(state, leader, tag, _not_leader)
        return
    me = communicator.context.me
    both = sorted((me, other), key=lambda proc: proc.rank)
    between = process.bridge(bridge, both)
    swap = partial(swap_messages, state.world.engine, between, both.index(other), _BRIDGE_TAG)
    try:
        yield Leaders(state, leader, tag, swap)
    finally:
        process.pml.remove_communicator(between)


def _not_leader(_: bytes) -> bytes:
    raise AssertionError("only the leader talks")


def meet_parents(state: CommState) -> None:
    """In the children: make the communicator with their parents, while these are in `Spawn`.

    Args:
        state: of COMM_WORLD.

    Raises:
        MPIError: it cannot be made: a parent has gone, for one.
    """
    context = state.world.context
    job = getattr(context.wireup, "job", None)
    world = job.world_of(context.rank) if job is not None else None
    if world is None or not world.parents:
        return
    state.communicator.order.begin(KINDS["Spawn"], 0)
    parents = [context.proc(rank) for rank in world.parents]
    root = context.proc(world.root)
    with _leaders(state, 0, world.bridge, root) as leaders:
        state.world.parent = connect(state, leaders, parents, PARENT_NAME)
        leaders.ask(b"")  # the launcher takes this process for a rank of the job


def _started(state: CommState, programs: Callable[[], list[Program]]) -> bytes:
    """Ask for it; the root alone does."""
    world, communicator = state.world, state.communicator
    asked = {
        "apps": [_app(world, program) for program in programs()],
        "parents": [proc.rank for proc in communicator.procs],
    }
    return answered(world, "spawn", {}, json.dumps(asked).encode())


def _app(world: World, program: Program) -> dict[str, Any]:
    """A program as the launcher knows one, with the hosts that are named for it.

    Raises:
        MPIError: ERR_ARG, ERR_INFO_VALUE, ERR_SPAWN.
    """
    command, arguments, processes, info = program
    if processes < 1:
        raise MPIError(ERR_ARG, f"{command}: {processes} processes; at least one is started")
    for key in _OTHER_HOSTS:
        if key in info:
            text = f"info key {key}: a job's hosts are those it was started with; name some by host"
            raise MPIError(ERR_INFO_VALUE, text)
    if not command:
        raise MPIError(ERR_SPAWN, "the name of the program is empty")
    directory = os.path.join(os.getcwd(), info.get("wdir") or "")
    found = _found(command, info.get("path") or "", directory)
    environment = (*_environment(world), *_variables(info.get("env") or ""))
    app = App((found, *arguments), processes, environment, directory.rstrip("/") or "/")
    hosts = [name.strip() for name in (info.get("host") or "").split(",")]
    told = {"hosts": [name for name in hosts if name], "expendable": _is_expendable(info)}
    return {**app._asdict(), **told}


def _is_expendable(info: Info) -> bool:
    """Whether the job goes on if such a process ends.

    Raises:
        MPIError: ERR_INFO_VALUE, it is neither true nor false.
    """
    said = info.get(EXPENDABLE) or "false"
    if said not in {"true", "false"}:
        raise MPIError(ERR_INFO_VALUE, f"info key {EXPENDABLE}: {said!r} is neither true nor false")
    return said == "true"


def _environment(world: World) -> tuple[tuple[str, str], ...]:
    """The variables that the user has given this rank's program, by `-x` for one."""
    job = getattr(world.context.wireup, "job", None)
    if job is None:
        return ()
    found: tuple[tuple[str, str], ...] = job.apps[
        job.placements[world.context.rank].app
    ].environment
    return found


def _variables(text: str) -> list[tuple[str, str]]:
    """Those of the info key `env`, a line each, as Open MPI has it.

    Raises:
        MPIError: ERR_INFO_VALUE, a line is none.
    """
    found = []
    for line in text.splitlines():
        name, is_one, value = line.partition("=")
        if not is_one or not name:
            raise MPIError(ERR_INFO_VALUE, f"info key env: {line!r} is not NAME=value")
        found.append((name, value))
    return found


def _found(command: str, path: str, directory: str) -> str:
    """Where a program is, if the info key `path` says where to look for it."""
    if os.sep in command:
        return command
    for part in filter(None, path.split(os.pathsep)):
        candidate = os.path.join(directory, part, command)
        if os.access(candidate, os.X_OK):
            return candidate
    return command
