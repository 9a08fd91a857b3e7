"""What reads input of users: each with sound examples and a way to have it read a mutant.

A reader may refuse, by its own error or exit code. Whatever else it raises is a defect, and so is
one that does not end or that takes memory without bound.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import click

EXAMPLES: Final = Path(__file__).parent / "mutant_examples"
CONFIGS: Final = Path(__file__).parents[2] / "configs"
HERE: Final = "here"  # the name of this host

HOSTFILES: Final = (
    b"# two hosts\na slots=2 max_slots=4\nb slots = 3 username=me port=22\n\nme@c cpu=1\n",
    b"localhost\nlocalhost\nn1 slots=4\n",
)
HOST_WORDS: Final = (b"a:2,b", b"me@n1:3,localhost,n2:*", b"here:*,here:2")
MAPS: Final = (b"slot", b"node:oversubscribe", b"ppr:2:node", b"seq", b"ppr:1:node:nooversubscribe")
NODE_LISTS: Final = (b"n[1-3,07],m", b"a[1-2]b[01-12]c,d", b"n[0-9]")
TASKS: Final = (b"2(x4),1", b"1", b"4(x3)")
PARAMETERS: Final = (
    b"# mine\nbtl = self,tcp\nbtl_tcp_eager_limit = 64k\n/* not\n this */ pml_ob1_priority=5\n",
    b"-mca btl self,sm -x NAME=value\n--mca bml_base_sample_rails 1 -x 'A=b c'\ncoll = ^sm\n",
)
SPECS: Final = (
    b"drop:probability=0.01,rank=0+1,direction=both;delay:delay=10ms,jitter=1ms,peer=1",
    b"link_down:from=1s,until=2.5s,rail=eth1",
    b"corrupt:nth=3+5,mode=byte,bit=7;black_hole:message=2,byte=100,lasts=30ms,gives_up=1min",
    b"rate_limit:rate=10Mbit/s,buffer=4096,rank=1;work_error:probability=0.5,seed=3,error=EIO",
)
QUANTITIES: Final = (b"10ms", b"2.5us", b"60min", b"10Gbit/s", b"100kbit/s")


class Subject(NamedTuple):
    """A reader.

    Attributes:
        examples: what it takes.
        read: has it read bytes, in a folder of its own; raises nothing but defects.
    """

    examples: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], object]


def _refused(*kinds: type[BaseException]) -> contextlib.suppress:
    return contextlib.suppress(*kinds)


def _text(data: bytes) -> str:
    """As argv or the environment has it."""
    return data.replace(b"\0", b"?").decode(errors="surrogateescape")


# traces


@cache
def _traces() -> list[bytes]:
    return [path.read_bytes() for path in sorted(EXAMPLES.glob("*.jsonl"))]


@cache
def _gasnet_traces() -> list[bytes]:
    return [path.read_bytes() for path in sorted((EXAMPLES / "gasnet").glob("*.jsonl"))]


@cache
def _exported_traces() -> list[bytes]:
    return [path.read_bytes() for path in sorted((EXAMPLES / "exported").glob("*.jsonl"))]


def _read_exported_trace(data: bytes, folder: Path) -> None:
    """Calls, communicators and packets, written for other tools."""
    from ompy.cli.tracing.trace import trace

    (folder / "rank-0.jsonl").write_bytes(data)
    (folder / "rank-1.jsonl").write_bytes(_exported_traces()[1])
    archive, capture = str(folder / "archive"), str(folder / "job.pcapng")
    options = ["--otf2", archive, "--pcapng", capture, "--chrome", str(folder / "c.json")]
    options += ["--play", str(folder / "p.html")]
    for each in range(0, len(options), 2):
        with _silence(), _refused(click.ClickException):
            trace.main([str(folder), *options[each : each + 2]], standalone_mode=False)


def _read_gasnet_trace(data: bytes, folder: Path) -> None:
    _read_trace(data, folder, _gasnet_traces())


def _read_trace(data: bytes, folder: Path, sound: Sequence[bytes] = ()) -> None:
    """One rank's file is a mutant, the other's is sound; every view of them."""
    (folder / "rank-0.jsonl").write_bytes(data)
    sound = sound or _traces()
    for other in sound:
        if b'"rank":1,' in other.partition(b"\n")[0]:
            (folder / "rank-1.jsonl").write_bytes(other)
    (folder / "job.json").write_bytes(b'{"exit_code": 3}')
    _show_trace(folder)


def _read_job_facts(data: bytes, folder: Path) -> None:
    (folder / "rank-0.jsonl").write_bytes(_traces()[0])
    (folder / "job.json").write_bytes(data)
    _show_trace(folder)


def _show_trace(folder: Path) -> None:
    from ompy.cli.tracing.trace import trace

    for options in (
        [],
        ["--text"],
        ["--chrome", str(folder / "c.json")],
        ["--sequence", str(folder / "m.svg"), "--rank", "0", "--message", "1"],
        ["--sequence", str(folder / "m.mmd"), "--message", "2"],
        ["--play", str(folder / "p.html")],
    ):
        with _silence(), _refused(click.ClickException):
            trace.main([str(folder), *options], standalone_mode=False)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with (
        contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")),
        contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO(), errors="backslashreplace")),
    ):
        yield


# what a job is made of


def _read_faults_file(data: bytes, folder: Path) -> None:
    from ompy.mca.errors import UsageError
    from ompy.runtime.faults.fault_script import read_faults

    (path := folder / "faults.toml").write_bytes(data)
    with _refused(UsageError):
        for rule in read_faults([str(path)], 2):
            _see_that_it_travels(rule._asdict())


def _see_that_it_travels(values: dict[str, Any]) -> None:
    """To a rank, whose rules are C where it is compiled."""
    import json

    from ompy.net.faults.fault_rules import FaultRule

    FaultRule.from_dict(json.loads(json.dumps(values)))
    for value in values.values():
        for each in value if isinstance(value, tuple) else (value,):
            assert not isinstance(each, int) or -(1 << 63) <= each < 1 << 63, values


def _read_spec(data: bytes, _folder: Path) -> None:
    from ompy.mca.errors import UsageError
    from ompy.runtime.faults.fault_script import read_faults

    with _refused(UsageError):
        for rule in read_faults([_text(data)], 2):
            _see_that_it_travels(rule._asdict())


def _read_quantity(data: bytes, _folder: Path) -> None:
    from ompy.mca.errors import UsageError
    from ompy.runtime.faults.quantities import duration, rate

    for read in (duration, rate):
        with _refused(UsageError):
            assert 0 <= read(_text(data), "--option") < 1 << 63


def _read_parameters(data: bytes, folder: Path) -> None:
    from ompy.frameworks.catalog import CATALOG
    from ompy.mca.errors import UsageError
    from ompy.mca.parameters.settings import gather_settings
    from ompy.mca.plugins.component_records import ComponentRecord
    from ompy.mca.registry import Registry

    (path := folder / "some.conf").write_bytes(data)
    environ = {"HOME": str(folder)}
    for pairs in (
        [("mca_base_param_files", str(path))],
        [("mca_base_envar_file_prefix", str(path))],
    ):
        with _refused(UsageError):
            records = [ComponentRecord.from_dict(values) for values in _records()]
            Registry(CATALOG, gather_settings(pairs, environ), records).check_settings()


@cache
def _records() -> tuple[Any, ...]:
    from ompy.frameworks.catalog import CATALOG
    from ompy.mca.registry import Registry

    return tuple(record.to_dict() for record in Registry(CATALOG, []).records)


def _read_hostfile(data: bytes, folder: Path) -> None:
    (path := folder / "hosts").write_bytes(data)
    _place([], [str(path)], None, b"slot")


def _read_hosts(data: bytes, _folder: Path) -> None:
    _place([_text(data)], [], None, b"node")


def _read_map(data: bytes, _folder: Path) -> None:
    _place(["a:2,b:3"], [], None, data)
    _place(["a:2,b:3"], [], 4, data)


def _place(hosts: list[str], files: list[str], count: int | None, by: bytes) -> None:
    from ompy.cli.launch.command_line import CommandError
    from ompy.cli.launch.hosts import allocate_slots
    from ompy.cli.launch.mapping import default_count, parse_map_by, place_ranks

    with _refused(CommandError):
        found = allocate_slots(hosts, files, HERE, 4)
        policy = parse_map_by(_text(by))
        if found is not None:
            ranks = default_count(found, policy) if count is None else count
            place_ranks([ranks], [found], policy, oversubscribe=True)


def _read_nodes(data: bytes, _folder: Path) -> None:
    _allocation(SLURM_JOB_NODELIST=_text(data), SLURM_TASKS_PER_NODE="1")


def _read_tasks(data: bytes, _folder: Path) -> None:
    _allocation(SLURM_JOB_NODELIST="n[1-9]", SLURM_TASKS_PER_NODE=_text(data))


def _allocation(**variables: str) -> None:
    from ompy.runtime.launching.allocation import allocated_hosts

    with _refused(ValueError):
        allocated_hosts({"SLURM_JOB_ID": "1", **variables})


# options, as click knows them


def commands() -> dict[str, click.Command]:
    """Every command that has options, by the words that call it."""
    from ompy.cli.info.command import command as info
    from ompy.cli.main import main
    from ompy.cli.options import command as run

    found = {"ompy-run": run, "ompy-info": info}

    def add(words: str, command: click.Command) -> None:
        found[words] = command
        for name, inner in getattr(command, "commands", {}).items():
            add(f"{words} {name}", inner)

    add("ompy", main)
    return found


def option_values() -> list[tuple[str, click.Option]]:
    """Every option that takes a value, with the words of its command."""
    return [
        (words, option)
        for words, command in sorted(commands().items())
        for option in command.params
        if isinstance(option, click.Option) and not option.is_flag
    ]


def give(words: str, option: click.Option, values: Sequence[str], folder: Path) -> int:
    """Call a command with one option's value; no job is started. Returns the exit code."""
    given = [option.opts[0], *values]
    if words == "ompy-run":
        from ompy.cli.run import _guarded, _run

        with _silence(), patch.dict(os.environ, {"HOME": str(folder)}):
            return _guarded(lambda: _run([*given, "--do-not-launch", "/bin/true"]))
    command = commands()[words]
    program = folder / "program.py"
    program.touch()
    rest = {"ompy sim": [str(program)], "ompy trace": [str(folder)]}.get(words, [])
    rest = rest or (["latency"] if words == "ompy bench" else ["self"] if "btl" in words else [])
    with _silence(), _refused(click.exceptions.Exit):
        try:
            context = command.make_context(words, [*given, *rest])
            _use(words, context.params)
        except click.ClickException as problem:
            problem.format_message()
            return problem.exit_code
    return 0


def _use(words: str, options: dict[str, Any]) -> None:
    """What a command does with its options before it starts anything."""
    from ompy.cli.bytecounts import parse_bytes
    from ompy.cli.launch.command_line import CommandError
    from ompy.cli.measuring.bench import parse_sizes
    from ompy.cli.simulating.sim import make_scenario
    from ompy.mca.errors import ComponentError, UsageError

    with _refused(UsageError, ComponentError, CommandError):
        if words == "ompy sim":
            make_scenario(options)
        elif words == "ompy bench" and options["sizes"]:
            parse_sizes(options["sizes"])
        elif words == "ompy explain" and isinstance(options.get("size"), str):
            parse_bytes(options["size"])


SUBJECTS: Final[dict[str, Subject]] = {
    "trace": Subject(_traces, _read_trace),
    "trace for other tools": Subject(_exported_traces, _read_exported_trace),
    "trace of GASNet": Subject(_gasnet_traces, _read_gasnet_trace),
    "job.json": Subject(lambda: [b'{"format": "ompy-trace", "exit_code": 3}'], _read_job_facts),
    "fault script": Subject(
        lambda: [path.read_bytes() for path in sorted(CONFIGS.rglob("*.toml"))], _read_faults_file
    ),
    "--fault": Subject(lambda: list(SPECS), _read_spec),
    "time or rate": Subject(lambda: list(QUANTITIES), _read_quantity),
    "parameter file": Subject(
        lambda: [*PARAMETERS, *(path.read_bytes() for path in sorted(CONFIGS.rglob("*.conf")))],
        _read_parameters,
    ),
    "hostfile": Subject(lambda: list(HOSTFILES), _read_hostfile),
    "--host": Subject(lambda: list(HOST_WORDS), _read_hosts),
    "--map-by": Subject(lambda: list(MAPS), _read_map),
    "node list": Subject(lambda: list(NODE_LISTS), _read_nodes),
    "tasks per node": Subject(lambda: list(TASKS), _read_tasks),
}
