"""`ompy sim --explore`: every schedule of a program; `--schedule`: one of them again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ompy.cli.launch.command_line import CHECK_DIRECTORY
from ompy.cli.simulating.direct_worlds import direct_options
from ompy.cli.simulating.sim import OTHERS_NETS, make_scenario, preload, run_scenario, tell_user
from ompy.cli.simulating.sim_failure import MODES, tell_failure
from ompy.cli.simulating.sim_resume import SearchFile
from ompy.frameworks.direct import AGREED, DEATHS, STORED
from ompy.mca.errors import UsageError
from ompy.runtime.exploration.matching.accesses import ORDER_OF_FILES, ORDER_OF_NAMES

if TYPE_CHECKING:
    from ompy.cli.simulating.sim_check import WorldChecker
    from ompy.runtime.exploration.explorer import Bounds, Explored, Failure
    from ompy.runtime.simulation.simulated_world import Scenario

INTERRUPTED: Final = 130  # exit code: 128 and SIGINT, as a shell has it
NOT_WITH: Final = {  # options that say something of packets, or of many worlds
    "faults": "--fault",
    "kills": "--kill",
    "rails": "--rails",
    "ranks_per_host": "--ranks-per-host",
    "latency": "--latency",
    "bandwidth": "--bandwidth",
    "seeds": "--seeds",
}
COLL: Final = "basic,inter"  # linear: members wait for no more of the others than MPI demands
# of windows: nobody sees a program's loads
IF_LOADS: Final = (
    "if no rank loads from its own part of a window what others change, except behind Win.Sync"
)
IF_ALIKE: Final = "if standard sends all buffer or all wait"
CONDITIONS: Final = {  # of what is not tried, each where it matters
    ORDER_OF_FILES: "if it makes no difference which rank accesses the same bytes of a file first",
    STORED: "if what is read from files is the same in every schedule",
    ORDER_OF_NAMES: "if it makes no difference whether a file is opened or removed first",
    DEATHS: "if it makes no difference when a rank notices that another one has died or has "
    "revoked a communicator",
    AGREED: "if it makes no difference when Iagree and Ishrink end",
}


def run_exploration(options: dict[str, Any]) -> int:
    """All schedules. Returns the exit code.

    Raises:
        UsageError, ComponentError: what was asked for is wrong.
    """
    from ompy.runtime.exploration.exploring import Exploring
    from ompy.runtime.exploration.modes import explore_modes

    if options["schedule"]:
        raise UsageError("--explore tries all schedules, --schedule one: choose one of them")

    scenario = _scenario(options, "--explore", ("trace",))
    jobs = options["jobs"] or len(os.sched_getaffinity(0))
    bounds = _bounds(options, jobs)
    stopped = SearchFile(options)
    plains = stopped.read_modes()
    preload(scenario.job)
    null = os.open(os.devnull, os.O_WRONLY)
    exploring = Exploring({}, polls=options["polls"])
    scenario = scenario._replace(output=null, exploring=exploring)
    explored: dict[bool, Explored] = {}
    checkers = _checkers(options)
    modes = explore_modes(scenario, bounds, plains, jobs=jobs, checkers=checkers)
    try:
        for buffers, found in modes:
            explored[buffers] = found
            if found.failure is not None:
                stopped.remove_file()
                failure = found.failure
                if _is_of_the_folder(scenario, explored, failure, buffers=buffers):
                    failure = _given_up(failure)
                code = tell_failure(options, explored, failure, buffers=buffers)
                return _checked(explored, failure, code) if checkers else code
            if found.interrupted and jobs == 1:
                break
    except KeyboardInterrupt:
        tell_user("interrupted: nothing is proven", "interrupted", "warning")
        return INTERRUPTED
    finally:
        modes.close()
    code = _tell_well(options, list(explored.values()))
    if checkers:
        code = _checked(explored, None, code)
    known = {mode: one.plain for mode, one in explored.items() if one.plain is not None}
    stopped.write_modes({**plains, **known})
    return INTERRUPTED if any(one.interrupted for one in explored.values()) else code


def _is_of_the_folder(
    scenario: Scenario, explored: Mapping[bool, Explored], failure: Failure, *, buffers: bool
) -> bool:
    """Whether a schedule that ended well fails as this one does, if it is run once more.

    Then the failure is not one of a schedule: files have what other worlds have written.
    """
    from ompy.runtime.exploration.trunk import Trunk, result_of

    if explored[buffers].worlds < 2:
        if buffers or True not in explored:
            return False  # no world has ended well
        buffers = True
    assert scenario.exploring is not None, "it is a world that is explored"
    trunk = Trunk(scenario._replace(exploring=scenario.exploring._replace(buffers=buffers)))
    try:
        again = result_of(trunk.begin_world({}))  # as the first world of the mode
    finally:
        trunk.close()
    return (again.kind, again.code) == (failure.result.kind, failure.result.code)


def _given_up(failure: Failure) -> Failure:
    """The same, as one of a program that cannot be explored."""
    from ompy.runtime.exploration.trunk import DIVERGED

    text = (
        f"a schedule that ended well fails when it is run once more, perhaps by files that other "
        f"worlds have left: {failure.result.text}"
    )
    return failure._replace(result=failure.result._replace(kind=DIVERGED, code=1, text=text))


def _bounds(options: dict[str, Any], jobs: int) -> Bounds:
    from ompy.runtime.exploration.explorer import Bounds
    from ompy.runtime.faults.quantities import duration

    seconds = duration(options["time"], "--time") / 1e9 if options["time"] else float("inf")
    depth, bug_depth = options["depth"], options["pct"] or 0
    return Bounds(options["worlds"], seconds, jobs, depth, bug_depth, options["seed"])


def _checkers(options: dict[str, Any]) -> dict[bool, WorldChecker]:
    if not options["check"]:
        return {}
    from ompy.cli.simulating.sim_check import WorldChecker

    return {buffers: WorldChecker(buffers=buffers) for buffers in MODES}


def _checked(explored: dict[bool, Explored], failure: Failure | None, code: int) -> int:
    from ompy.cli.simulating.sim_check import tell_checked

    return tell_checked(explored, failure, code)


def run_schedule(options: dict[str, Any]) -> int:
    """One schedule, from a file. Returns the exit code.

    Raises:
        UsageError, ComponentError: what was asked for is wrong.
    """
    from ompy.replay.replaying.outcomes import DIVERGED
    from ompy.runtime.exploration.events import Diverged
    from ompy.runtime.exploration.exploring import Exploring
    from ompy.runtime.exploration.schedule_file import read_schedule
    from ompy.runtime.exploration.windows.parts import Parts

    path = options["schedule"]
    try:
        saved = read_schedule(path)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise UsageError(f"--schedule {path}: {why}; ompy sim --explore writes one") from None
    if saved.ranks != options["ranks"]:
        raise UsageError(f"--schedule {path}: it is of {saved.ranks} ranks: run it with that -n")
    same = check_program(path, saved.about, options)
    scenario = _scenario(options, "--schedule", ())
    calls = None if options["go_on"] else saved.calls
    parts = Parts(saved.parts)
    exploring = Exploring(saved.script, saved.buffers, saved.polls, calls, lines=same, parts=parts)
    try:
        return run_scenario(scenario._replace(exploring=exploring), options)
    except Diverged as problem:
        tell_user(f"error: --schedule {path}: {problem}", "diverged", "error")
        if calls is not None:
            tell_user("to run it with what still fits of the schedule: --go-on", "diverged")
        return DIVERGED


def check_program(path: str, about: Mapping[str, Any], options: dict[str, Any]) -> bool:
    """See that a schedule is of this program; a program that has been changed is told of.

    Args:
        path: of the file.
        about: what it says of its program.
        options: of this command.

    Returns:
        Whether the program is the same.

    Raises:
        UsageError: it is of another program, or of other arguments.
    """
    from ompy.cli.simulating.kept_world import digest_of

    if not about:
        return False
    then, now = str(about.get("program")), str(options["program"])
    if os.path.basename(then) != os.path.basename(now):
        raise UsageError(f"--schedule {path}: it is of {then}, not of {now}")
    if about.get("arguments") != list(options["arguments"]):
        words = shlex.join(map(str, about.get("arguments", ())))
        raise UsageError(f"--schedule {path}: it is of {then} with other arguments: {words or '-'}")
    if about.get("sha256") != digest_of(now):
        text = f"{now} has been changed since; the schedule holds as far as its calls are the same"
        tell_user(f"warning: --schedule {path}: {text}", "changed", "warning")
        return False
    return True


def plain_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a world of packets and faults, without all that is about these."""
    usual = dict.fromkeys((*NOT_WITH, "trace"))
    usual |= {name: options["defaults"][name] for name in ("rails", "ranks_per_host")}
    pairs = [pair for pair in options["mca"] if pair[0] not in OTHERS_NETS]
    return {**options, **usual, "faults": (), "kills": (), "mca": pairs}


def plain_scenario(options: dict[str, Any]) -> Scenario:
    """The program of other options in a world that is explored."""
    from ompy.runtime.exploration.exploring import Exploring

    scenario = _scenario(plain_options(options), "--explore", ())
    return scenario._replace(exploring=Exploring({}, polls=options["polls"]))


def _scenario(options: dict[str, Any], mode: str, others: tuple[str, ...]) -> Scenario:
    """A world in which messages are matched without packets.

    Raises:
        UsageError: an option says something of packets.
    """
    names = {**NOT_WITH, **{name: f"--{name}" for name in others}}
    options = direct_options(options, mode, names, COLL)
    if options["check"]:  # its directory is written nothing to: the world takes it
        options["mca"] = (*options["mca"], (CHECK_DIRECTORY, "."))
    return make_scenario(options)


def _tell_well(options: dict[str, Any], explored: list[Explored]) -> int:
    schedules = max(one.schedules for one in explored)
    worlds = sum(one.worlds for one in explored)
    matchings = f"{schedules} schedule{'s' if schedules > 1 else ''}"
    left = sum(one.left for one in explored)
    if left or len(explored) < len(MODES):
        tell_user(
            f"not proven: {worlds} worlds all ended well, at least {left} are left "
            f"({', '.join(_felt(explored))})",
            "not proven",
            "warning",
            worlds=worlds,
            left=left,
        )
        _tell_random(options, explored)
        return 0
    for_what = f"for -n {options['ranks']} and this input"
    shallow = any(one.shallow for one in explored)
    heeded = any(one.heeded for one in explored)
    bounded = any(one.bounded for one in explored)
    within = "within --polls " if bounded else ""
    proven = f"not proven {for_what}" if shallow or heeded else f"proven {within}{for_what}"
    name = "not proven" if shallow or heeded else "proven"
    conditions = _conditions(explored)
    if name == "proven" and conditions:
        name, proven = "proven if", f"{proven}, {', and '.join(conditions)}"
    tell_user(
        f"{matchings}, 2 modes of buffering: every one ends well ({worlds} worlds); {proven}",
        name,
        worlds=worlds,
        schedules=schedules,
    )
    _tell_bounds(options, shallow=shallow, heeded=heeded, bounded=bounded)
    return 0


def _conditions(explored: list[Explored]) -> list[str]:
    """On which conditions something is proven.

    Where some sends buffer and others wait, messages match as they may where all buffer. If such a
    schedule ends well where all wait, it does so where only some do. So only what the mode that
    waits has not seen is open.
    """
    buffering, waiting = (one.seen for one in explored)
    untried = frozenset().union(*(one.untried for one in explored))
    found = [] if buffering <= waiting else [IF_ALIKE]
    found += [IF_LOADS] if any(one.loaded for one in explored) else []
    return found + [text for what, text in CONDITIONS.items() if what in untried]


def _tell_bounds(options: dict[str, Any], *, shallow: bool, heeded: bool, bounded: bool) -> None:
    """Within which bounds something is proven, or not."""
    if shallow:
        tell_user(
            f"within this bound: choices beyond the first {options['depth']} of a world took their "
            "first value, and nothing is proven beyond (--depth)",
            "bound",
        )
    if heeded:
        tell_user(
            "within this bound: a rank looks at its own part of a window, and no call orders that; "
            "what it does then comes after what the part has served by then",
            "bound",
        )
    if bounded:
        tell_user(
            f"within this bound: a poll that could find something finds nothing at most "
            f"{_times(options['polls'])} (--polls)",
            "bound",
        )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times in a row"


def _felt(explored: list[Explored]) -> list[str]:
    """What may have ended a search that is not whole."""
    if any(one.interrupted for one in explored):
        return ["interrupted"]
    return ["--worlds", "--time"] + ["--depth"] * any(one.shallow for one in explored)


def _tell_random(options: dict[str, Any], explored: list[Explored]) -> None:
    """What the worlds of random priorities say."""
    for one, (_, mode) in zip(explored, MODES.items(), strict=False):
        if one.random is None:
            continue
        ranks, calls, depth = one.random.ranks, one.random.calls, options["pct"]
        chance = ranks * calls ** (depth - 1)
        tell_user(
            f"{one.random.worlds} worlds of random priorities {mode} ended well; each finds a "
            f"failure of depth {depth} with a probability of at least 1/(n k^{depth - 1}) = "
            f"1/{chance:,}, n = {ranks} ranks, k = {calls} calls (Burckhardt et al., ASPLOS 2010)",
            "random priorities",
            worlds=one.random.worlds,
            one_in=chance,
        )
