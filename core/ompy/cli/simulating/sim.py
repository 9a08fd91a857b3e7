"""`ompy sim`: a whole program in the virtual world, on one seed."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from random import Random
from typing import TYPE_CHECKING, Any, Final

import click

from ompy import outputs
from ompy.cli.completing.completion import complete_file, complete_parameter
from ompy.cli.launch.command_line import RANKS_MAX
from ompy.cli.numbers import Number, WholeNumber
from ompy.cli.simulating.cluster_options import cluster_options
from ompy.mca.errors import ComponentError, UsageError
from ompy.mca.parameters.settings import ENVIRONMENT_PREFIX, LOG_FORMAT
from ompy.mca.reporting import FORMATS, JSON, TEXT, Finding, Reporter
from ompy.runtime.diagnosis.shortage import Short

if TYPE_CHECKING:
    from ompy.frameworks.job import Job
    from ompy.net.faults.fault_rules import FaultRule
    from ompy.net.virtual.virtual_network import Rail
    from ompy.runtime.faults.fault_report import FaultTally
    from ompy.runtime.simulation.simulated_world import Outcome, Scenario

PROGRAM: Final = "ompy sim"
RAILS_MAX: Final = 1024  # of a world; arbitrary: more than any host has
BTL: Final = "self,usnic"  # every fault strikes its packets, and what it resends is counted
PREPARED: Final = "OMPY_SIM_PREPARED"  # variable: the interpreter has been started anew
HASH_SEED: Final = "0"  # Python: strings hash as they are, the same in every run
IN_RANKS: Final = {"pml", "bml", "btl", "nic", "coll"}  # frameworks whose modules a rank imports
WITHOUT_DEVICES: Final = {"self", "sm", "tcp"}  # BTLs that use no component of nic
SHARED: Final = (  # modules that import nothing of a rank's own
    "ompy.mpi.communicators.predefined_comms",
    "ompy.mpi.processes.environment",
    "ompy.mpi.communicators.communicators",
    "ompy.mpi.buffers.objects",
    "ompy.mpi.communicators.cartesian",
    "ompy.mpi.communicators.graphs",
    "ompy.mpi.point_to_point.grequest",
    "ompy.mpi.communicators.intracomm",
    "ompy.runtime.ranks.client",
    "ompy.runtime.ranks.process",
    "ompy.runtime.rails.rail_report",
    "ompy.runtime.diagnosis.standing",
)
OTHERS_NETS: Final = {"pml", "btl", "bml"}  # parameters that a world without packets sets itself
_NO_RANDOMIZE: Final = 0x0040000  # Linux ADDR_NO_RANDOMIZE
INTERRUPTED: Final = "interrupted"  # kind of a world that Ctrl-C has ended
SHORT: Final = 1  # exit code: too little of something; as any program that has failed
_QUERY: Final = 0xFFFFFFFF  # Linux personality(2): only ask
WARNING: Final = ("warning", "warning")  # name and level
_reporter = Reporter()  # makes lines of what is said, as `speak` has set it last


@click.command(
    "sim",
    context_settings={"allow_interspersed_args": False},
    options_metavar="[options]",
    epilog="Exit code: the program's own; 3 when --fault-strict has cause, 4 for a deadlock, 5 for "
    "a world without end; with --seeds 1 when any seed failed. See docs/simulation.md.",
)
@click.option("-n", "--ranks", type=WholeNumber(1, RANKS_MAX), default=2, help="Ranks. Default: 2.")
@click.option("--seed", type=int, default=0, help="Decides all that the program does not.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="SPEC|FILE",
    shell_complete=complete_file,
    help="A fault script, its name, or a SPEC (docs/faults.md). Repeatable.",
)
@click.option("--fault-strict", is_flag=True, help="A fault that never struck is an error.")
@click.option(
    "--kill",
    "kills",
    multiple=True,
    metavar="SPEC",
    help="Kill a rank or a host: rank=3,after=2s or host=NAME,after=2s of virtual time. "
    "Repeatable. With --mca mpi_ft_enable 1 the world goes on without.",
)
@click.option(
    "--mca",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    shell_complete=complete_parameter,
    help=f"Set an MCA parameter. Repeatable. btl is {BTL} unless it is set.",
)
@click.option(
    "--ranks-per-host",
    type=WholeNumber(1, RANKS_MAX),
    default=1,
    metavar="N",
    help="Ranks that share a host, and its memory. Default: 1.",
)
@click.option("--rails", type=WholeNumber(1, RAILS_MAX), default=1, help="Networks: rail0, ...")
@click.option(
    "--latency",
    metavar="TIME",
    help="Of a rail. Default: 10us, or what an emulated NIC's clock says.",
)
@click.option("--bandwidth", metavar="RATE", help="Of a rail. Default: 10Gbit/s, or the NIC's.")
@click.option(
    "--report-rails", metavar="FILE", help="Write what became of rails that broke, as JSON."
)
@cluster_options
@click.option("--trace", metavar="DIR", help="Write the events to DIR, for `ompy trace DIR`.")
@click.option("--limit", default="60min", metavar="TIME", help="Virtual time it may take.")
@click.option(
    "--patience",
    type=Number(min=0, min_open=True),
    default=60.0,
    metavar="SECONDS",
    help="Real time a rank may compute without a call to MPI or a clock. Default: 60.",
)
@click.option(
    "--seeds",
    type=WholeNumber(min=1),
    metavar="N",
    help="Run N seeds from --seed on, tell of those that fail, and shrink their faults.",
)
@click.option("--jobs", type=WholeNumber(min=1), metavar="N", help="Worlds at a time.")
@click.option(
    "--keep",
    default="sim-failures",
    metavar="DIR",
    help="Where a sweep puts what failed. Default: sim-failures.",
)
@click.option("--shrink/--no-shrink", default=True, help="Whether a sweep shrinks faults.")
@click.option(
    "--explore",
    is_flag=True,
    help="Try every schedule that matters: which message a receive takes, what a poll finds, "
    "whether sends buffer (docs/explore.md).",
)
@click.option(
    "--worlds",
    type=WholeNumber(min=1),
    default=10_000,
    metavar="N",
    help="With --explore, worlds at most in each mode of buffering. Default: 10000.",
)
@click.option("--time", metavar="TIME", help="With --explore, begin no world after this (real).")
@click.option(
    "--polls",
    type=WholeNumber(min=0),
    default=1,
    metavar="N",
    help="With --explore, how often in a row a poll finds nothing though it could. Default: 1.",
)
@click.option(
    "--depth",
    type=WholeNumber(min=0),
    metavar="N",
    help="With --explore, choices beyond the first N of each world keep their first value.",
)
@click.option(
    "--pct",
    type=WholeNumber(min=1),
    metavar="D",
    help="With --explore, where a bound has ended the search: run as many worlds again with random "
    "priorities, to find failures that take D choices.",
)
@click.option(
    "--resume",
    metavar="FILE",
    shell_complete=complete_file,
    help="With --explore, go on with the search in FILE if it is there, and write it there where "
    "it is not whole. Default: DIR of --keep, PROGRAM-search.json, to write only.",
)
@click.option(
    "--check",
    is_flag=True,
    help="With --explore, look in each world for what ompy-run --check looks for. With --schedule, "
    "of such a search.",
)
@click.option(
    "--schedule",
    metavar="FILE",
    shell_complete=complete_file,
    help="Run one schedule again that --explore has written.",
)
@click.option(
    "--go-on",
    is_flag=True,
    help="With --schedule, go on where the program's calls are not those of the schedule.",
)
@click.option("--rank", type=WholeNumber(0), metavar="R", help="With --pdb, the rank to look at.")
@click.option("--pdb", is_flag=True, help="Run --rank R in Python's debugger.")
@click.option("--kept", metavar="FILE", hidden=True, help="This world is kept there already.")
@click.option(
    "--log-format",
    type=click.Choice(list(FORMATS)),
    help="How to write what ompy itself says. The same as mca_base_log_format.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing about a world that ended well.")
@click.argument("program", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def sim(context: click.Context, /, **options: Any) -> None:
    """Run PROGRAM as the ranks of a job in a virtual world.

    Time jumps, one rank runs at a time, and one seed decides every delay, every fault and every
    interleaving: the same seed gives the same run, and the same trace.
    """
    prepare_interpreter()
    asked = options["log_format"] or os.environ.get(f"{ENVIRONMENT_PREFIX}{LOG_FORMAT}", "")
    set_log_format(asked if asked in FORMATS else TEXT, host=os.uname().nodename)
    if options["log_format"]:
        options["mca"] = (*options["mca"], (LOG_FORMAT, options["log_format"]))
    options["defaults"] = {parameter.name: parameter.default for parameter in sim.params}
    try:
        if not options["cluster"]:
            check_one_world(options)
        if options["cluster"] or options["compute_scale"] is not None:
            from ompy.cli.simulating.sim_cluster import run_cluster

            context.exit(run_cluster(options, context))
        if options["explore"] or options["schedule"]:
            from ompy.cli.simulating.sim_explore import run_exploration, run_schedule

            context.exit((run_exploration if options["explore"] else run_schedule)(options))
        if options["seeds"]:
            from ompy.cli.simulating.sim_sweep import run_sweep

            context.exit(run_sweep(options))
        context.exit(run_world(options))
    except UsageError as problem:
        for text in problem.problems:
            tell_user(f"error: {text}", "error", "error")
        context.exit(problem.exit_code)
    except ComponentError as problem:
        tell_user(f"error: {problem}", "error", "error")
        context.exit(problem.exit_code)
    except Short as problem:
        tell_user(f"error: {problem}", "error", "error")
        context.exit(SHORT)


def check_one_world(options: dict[str, Any]) -> None:
    """See that what is of one world is asked of one.

    Raises:
        UsageError: what was asked for makes no sense.
    """
    rank, pdb = options["rank"], options["pdb"]
    if pdb != (rank is not None):
        raise UsageError("--pdb is of one rank: --rank R --pdb")
    if pdb and rank >= options["ranks"]:
        raise UsageError(f"--rank {rank}: the world has ranks 0 to {options['ranks'] - 1}")
    if pdb and (options["explore"] or options["seeds"]):
        raise UsageError("--pdb is of one world, not of many: --seed N or --schedule FILE")
    if options["go_on"] and not options["schedule"]:
        raise UsageError("--go-on is of a schedule: name it with --schedule FILE")
    if options["explore"]:
        return
    for name in ("worlds", "time", "depth", "pct", "resume"):
        if options[name] not in {None, options["defaults"][name]}:
            raise UsageError(f"--{name} is of a search: --explore")
    if options["check"] and not options["schedule"]:
        text = "--check is of a search: --explore, or --schedule of one; ompy-run --check has jobs"
        raise UsageError(f"{text} of real processes checked")


def prepare_interpreter() -> None:
    """Start this interpreter anew, with a fixed hash seed and addresses that are not randomized.

    Sets of strings and of objects have the same order in every run then. Where the kernel does not
    let us, only the first holds.
    """
    if os.environ.pop(PREPARED, ""):
        # a shell that starts it in the background has it ignore what is to end it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return
    libc = ctypes.CDLL(None)
    persona = libc.personality(_QUERY)
    if persona >= 0:
        libc.personality(persona | _NO_RANDOMIZE)
    os.environ.setdefault("PYTHONHASHSEED", HASH_SEED)
    os.environ[PREPARED] = "1"
    if sys.stdout is not None:
        sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606


def run_world(options: dict[str, Any]) -> int:
    """One world. Returns the exit code.

    Raises:
        UsageError, ComponentError: what was asked for is wrong.
    """
    return run_scenario(make_scenario(options), options)


def run_scenario(scenario: Scenario, options: dict[str, Any]) -> int:
    """The world of a scenario. Returns the exit code."""
    from ompy.runtime.rails.rail_report import RailTally
    from ompy.runtime.simulation.simulated_world import UNFIT, World

    if options["pdb"]:
        from ompy.replay.replaying.debuggers import WorldPdb

        scenario = scenario._replace(debugger=WorldPdb(options["rank"]))
    preload(scenario.job)
    gc.freeze()  # what forks do not look at again is not copied
    world = World(scenario)
    outcome = world.run()
    tally = RailTally()
    for number, event in enumerate(outcome.rails):
        tally.told({**event, "number": number})
    if options["report_rails"]:
        try:
            outputs.write_text(options["report_rails"], tally.document())
        except OSError as problem:
            why = f"{problem.strerror}; the report is lost"
            tell_user(f"warning: --report-rails {options['report_rails']}: {why}", *WARNING)
    code = tell_outcome(scenario, outcome, strict=options["fault_strict"], quiet=options["quiet"])
    if world.timed is not None and outcome.kind == "ended" and not options["quiet"]:
        from ompy.cli.simulating.sim_cluster import tell_prediction

        tell_prediction(world)
    if code or not options["quiet"]:
        lines = tally.lines()
        if lines:
            tell_user(f"\n{PROGRAM}: ".join(lines), "rails", rails=tally.events)
    if outcome.code and outcome.kind not in {INTERRUPTED, UNFIT} and not options["pdb"]:
        _keep(outcome, options)
    return code


def _keep(outcome: Outcome, options: dict[str, Any]) -> None:
    """A world that fails is a recording; say how to look at it."""
    from ompy.cli.simulating.kept_world import debugging_command, keep_failed_world

    path = options["kept"] or options["schedule"]
    if path:
        command = debugging_command(path, outcome.text)
        tell_user(f"in a debugger: {command}", "kept", file=path)
        return
    keep_failed_world(
        options, {"kind": outcome.kind, "exit_code": outcome.code, "text": outcome.text}
    )


def preload(job: Job) -> None:
    """Put clocks and chance in place, then import what every rank needs: forks share it.

    Of components, ours that the selection allows; strangers' are imported in the ranks only. What
    needs a package that is not installed is left to its component, which says so when it is opened.
    """
    from ompy.mca.plugins.component_records import ComponentRecord, State
    from ompy.mca.plugins.loading import import_ahead
    from ompy.runtime.simulation import stand_ins

    allowed = {State.FOUND, State.LOADED}
    stand_ins.install()
    for name in SHARED:
        import_module(name)
    records = [ComponentRecord.from_dict(values) for values in job.mca["components"]]
    ours = [record for record in records if record.in_tree and record.state in allowed]
    wanted = IN_RANKS
    if {record.name for record in ours if record.framework == "btl"} <= WITHOUT_DEVICES:
        wanted = wanted - {"nic"}
    for record in ours:
        if record.framework in wanted:
            package = import_ahead(record.target.partition(":")[0].rpartition(".")[0])
            for module in iter_modules(package.__path__, f"{package.__name__}.") if package else ():
                import_ahead(module.name)


def make_scenario(options: dict[str, Any]) -> Scenario:
    """What the options describe.

    Raises:
        UsageError: they are wrong.
        ComponentError: a component that they name cannot be used.
    """
    from ompy.runtime.faults.quantities import duration
    from ompy.runtime.launching.kills import read_kills
    from ompy.runtime.simulation.simulated_world import Scenario

    rails = make_rails(options["rails"], options["latency"], options["bandwidth"])
    rules = _rules_of(options)
    _check_rails(rules, rails)
    job = make_job(options, rules)
    directory = os.path.abspath(options["trace"]) if options["trace"] else ""
    _check_trace(directory)
    return Scenario(
        job=job,
        seed=options["seed"],
        rails=rails,
        trace_directory=directory,
        limit=duration(options["limit"], "--limit"),
        patience=options["patience"],
        kills=read_kills(options["kills"], job) if options["kills"] else (),
        survives=bool(job.mca["values"].get("pml_base_ft_enable")),
    )


def _rules_of(options: dict[str, Any]) -> list[FaultRule]:
    if not options["faults"]:
        return []
    from ompy.runtime.faults.fault_script import read_faults  # which takes pydantic

    return read_faults(options["faults"], options["ranks"])


def _check_trace(directory: str) -> None:
    try:
        outputs.refuse_planted(directory or "/")
    except outputs.PlantedError as problem:
        raise UsageError(f"--trace {directory}: {problem}") from None
    if directory and os.path.exists(directory) and not os.path.isdir(directory):
        raise UsageError(f"--trace {directory}: it is not a directory")


def make_rails(count: int, latency: str | None, bandwidth: str | None) -> list[Rail]:
    """The networks of a world. Where neither is chosen, devices have links of their own.

    Raises:
        UsageError: a text is no time, or no rate.
    """
    from ompy.net.virtual.virtual_network import Rail
    from ompy.runtime.faults.quantities import duration, rate

    made = Rail("", chosen=latency is not None or bandwidth is not None)
    if latency is not None:
        delay = duration(latency, "--latency")
        made = replace(made, latency=delay, jitter=delay // 2)
    if bandwidth is not None:
        made = replace(made, bandwidth=max(1, rate(bandwidth, "--bandwidth") // 1_000_000))
    return [replace(made, name=f"rail{number}") for number in range(count)]


def _check_rails(rules: Sequence[FaultRule], rails: Sequence[Rail]) -> None:
    from ompy.mca.errors import did_you_mean
    from ompy.net.faults.fault_rules import RETRYING_RAILS

    names = [rail.name for rail in rails]
    known = {*names, *RETRYING_RAILS}
    problems = [
        f"{rule.origin}: there is no rail {rail}{did_you_mean(rail, names)}; "
        f"this world has {', '.join(names)} (--rails)"
        for rule in rules
        for rail in rule.rails
        if rail not in known
    ]
    if problems:
        raise UsageError(*problems)


def make_job(options: dict[str, Any], rules: Sequence[FaultRule]) -> Job:
    """The job: so many ranks on each host, parameters resolved. Warns of what no fault can strike.

    Raises:
        UsageError: a parameter is wrong, or lets shared memory in.
        ComponentError: a component that is named cannot be used.
    """
    from ompy.cli.simulating.past_the_wire import through_memory, unstruck
    from ompy.frameworks.btl_base.sealing import insist_on_seal
    from ompy.frameworks.catalog import CATALOG
    from ompy.frameworks.job import App, Job, Placement
    from ompy.mca.parameters.settings import gather_settings
    from ompy.mca.registry import Registry

    pairs = list(options["mca"])
    registry = Registry(CATALOG, gather_settings(pairs, os.environ))
    if registry.variable("btl").origin.source == "default":
        registry = Registry(CATALOG, gather_settings([*pairs, ("btl", BTL)], os.environ))
    about = {"job": job_id_of(options["seed"]), "host": os.uname().nodename}
    registry.speak_for(**about)
    set_log_format(registry.reporter().form, **about)
    registry.check_settings()
    insist_on_seal(registry)
    each = min(options["ranks_per_host"], options["ranks"])
    if each == 1 and through_memory(str(registry.value("btl"))):
        where = registry.variable("btl").origin.place
        raise UsageError(
            f"{where}: btl = {registry.value('btl')}: ranks of a simulated world share no memory "
            f"without --ranks-per-host; name what they may use, as --mca btl {BTL} or self,tcp"
        )
    ranks = options["ranks"]
    job = Job(
        job_id=about["job"],
        apps=(App((options["program"], *options["arguments"]), ranks),),
        hosts=tuple(f"host{node}" for node in range(-(-ranks // each))),
        placements=tuple(Placement(rank, 0, *divmod(rank, each)) for rank in range(ranks)),
        mca=registry.snapshot(),
        stdin_rank=-1,
        faults=tuple(rule._asdict() for rule in rules),
    )
    for reason in unstruck(rules, job, registry):
        tell_user(f"warning: --fault: {reason}", "unstruck", "warning")
    return job


def job_id_of(seed: int) -> str:
    """The id of the job in a world of this seed."""
    return Random(seed).randbytes(8).hex()  # noqa: S311 - the same for the same seed


def tell_outcome(scenario: Scenario, outcome: Outcome, *, strict: bool, quiet: bool) -> int:
    """Say how a world went. Returns the exit code."""
    from ompy.net.faults.fault_rules import FaultRule
    from ompy.runtime.faults.fault_report import NEVER_FIRED, FaultTally

    tally = FaultTally([FaultRule.from_dict(dict(rule)) for rule in scenario.job.faults])
    tally.told(0, outcome.delivered)
    code = outcome.code or (NEVER_FIRED if strict and tally.silent else 0)
    if quiet and not code:
        return 0
    if outcome.text:
        tell_user(outcome.text, "world failed", "error", kind=outcome.kind, exit_code=outcome.code)
    ranks = len(scenario.job.placements)
    resent = outcome.counters.get("retransmissions", 0)
    tell_user(
        f"{outcome.kind} at {outcome.time / 1e6:.6f} ms of virtual time; seed {scenario.seed}, "
        f"{ranks} ranks, {outcome.turns} turns",
        "world ended",
        kind=outcome.kind,
        time_ns=outcome.time,
        seed=scenario.seed,
        ranks=ranks,
        turns=outcome.turns,
    )
    for rank in outcome.dead:
        text = f"rank {rank} was killed; the world went on without it"
        tell_user(text, "rank lost", "warning", rank=rank)
    if outcome.messages or not outcome.conduit:
        tell_user(
            f"{outcome.messages} message{'s' * (outcome.messages != 1)} of {outcome.bytes} bytes, "
            f"{resent} retransmission{'s' * (resent != 1)}",
            "messages",
            messages=outcome.messages,
            bytes=outcome.bytes,
            retransmissions=resent,
        )
    if outcome.conduit:
        counted = ", ".join(f"{name} {count}" for name, count in outcome.conduit.items())
        tell_user(f"GASNet: {counted}", "conduit", counters=outcome.conduit)
    tell_faults(tally, strict=strict)
    if scenario.trace_directory:
        place = Path(scenario.trace_directory)
        tell_user(f"the trace is in {place}; see ompy trace", "trace", directory=str(place))
    return code


def tell_faults(tally: FaultTally, *, strict: bool) -> None:
    """Say how often each fault of the script has struck."""
    lines = tally.lines(strict=strict)
    if lines:
        text = f"\n{PROGRAM}: ".join(lines)
        tell_user(text, "faults delivered", delivered=tally.by_text())


def tell_user(text: str, name: str = "notice", level: str = "info", **fields: object) -> None:
    """Tell the user, on standard error, in the form that was asked for.

    Args:
        text: a sentence, or lines of a report.
        name: of the event, for programs.
        level: info, warning or error.
        fields: what a program wants to know of it.
    """
    told = Finding(name, f"{PROGRAM}: {text}\n", level, fields)
    with suppress(OSError):  # its reader has gone
        click.echo(_reporter.lines(told), nl=False, err=True)


def set_log_format(form: str, **about: object) -> None:
    """From now on tell the user in this form, about these: job, host."""
    global _reporter  # noqa: PLW0603 - as `launching.set_log_format`
    _reporter = Reporter(form, about)
    outputs.speak(_reporter.rendered if form == JSON else None)
