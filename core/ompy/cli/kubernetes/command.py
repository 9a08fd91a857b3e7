"""`ompy k8s`: the command line."""

from __future__ import annotations

import re
from typing import Any, Final

import click

from ompy.cli.numbers import WholeNumber
from ompy.cli.waiting import PATIENCE_S, PORT

# options of ompy-run, by click's names, and those of the manifest that stand for them
OF_THE_MANIFEST: Final = {
    "count": "-n before `--`",
    "hosts": "--hosts before `--`",
    "hostfiles": "--hosts before `--`",
    "npernode": "-n and --hosts before `--`",
    "wdir": "--workdir before `--`",
}
HOSTS_MAX: Final = 5000  # arbitrary: the nodes of the largest cluster that Kubernetes means to work
RANKS_MAX: Final = 1_000_000  # arbitrary: as ompy-run has it
NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")  # RFC 1035, as a Service's has to be
NAME_MAX: Final = 63  # characters of a label of the DNS, RFC 1035 2.3.4
LONGEST_END: Final = "-hosts-0-4999"  # of a pod's name
QUANTITY: Final = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|Ki|[MGTPE]i?)?")  # Kubernetes, Quantity
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
KEY_SIZE: Final = 32  # bytes; 256 bits of the kernel's random generator
DAY: Final = 86_400  # s
YEAR: Final = 366 * DAY  # s; arbitrary: beyond that a number is a mistake


def _amount(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    """An amount as Kubernetes writes it; empty for none.

    Raises:
        click.BadParameter: it is none.
    """
    if value is not None and not QUANTITY.fullmatch(value):
        raise click.BadParameter(f"{value!r} is no amount: write 4, 500m, 16Gi")
    return value or ""


def _name(_context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """The name of an object of Kubernetes; empty for none.

    Raises:
        click.BadParameter: it is none.
    """
    most = NAME_MAX - len(LONGEST_END) if parameter.name == "name" else NAME_MAX
    if value is not None and (len(value) > most or not NAME.fullmatch(value)):
        raise click.BadParameter(
            f"{value!r} is no name: small letters, digits and '-', a letter first, "
            f"{most} characters at most"
        )
    return value or ""


@click.group()
def k8s() -> None:
    """Jobs as objects of Kubernetes."""


@k8s.command(context_settings={"allow_interspersed_args": False})
@click.option("-n", "ranks", type=WholeNumber(1, RANKS_MAX), required=True, help="Ranks.")
@click.option("--hosts", type=WholeNumber(1, HOSTS_MAX), default=1, help="Pods they run in.")
@click.option("--image", required=True, help="Image with ompy and the program.")
@click.option(
    "--name",
    callback=_name,
    metavar="NAME",
    default="ompy-job",
    show_default=True,
    help="Name of the objects.",
)
@click.option("--namespace", callback=_name, metavar="NAME", help="Namespace of the objects.")
@click.option(
    "--mca",
    "parameters",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="Set a parameter, as for ompy-run.",
)
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="Set a variable.")
@click.option("--workdir", default=None, help="Where the program starts; else the image says it.")
@click.option(
    "--cpus", callback=_amount, metavar="AMOUNT", help="Of a pod; default: one for a rank."
)
@click.option("--memory", callback=_amount, metavar="AMOUNT", help="Of a pod, asked for and limit.")
@click.option("--shm", callback=_amount, metavar="AMOUNT", help="Most of a pod's /dev/shm.")
@click.option("--user", type=WholeNumber(0), default=None, help="Number of the user to be.")
@click.option(
    "--secret",
    callback=_name,
    metavar="NAME",
    help="Use this Secret, whose `key` has 16 random bytes or more, and write none.",
)
@click.option(
    "--start-timeout",
    type=WholeNumber(1, DAY),
    default=int(PATIENCE_S),
    show_default=True,
    metavar="S",
    help="So many seconds pods wait for each other.",
)
@click.option(
    "--deadline",
    type=WholeNumber(1, YEAR),
    default=None,
    metavar="S",
    help="Kubernetes ends the job after so many seconds.",
)
@click.option(
    "--keep",
    type=WholeNumber(0, YEAR),
    default=None,
    metavar="S",
    help="Kubernetes removes it so many seconds after its end; default: never.",
)
@click.option("--jobset", is_flag=True, help="A JobSet in place of a Job and a Service.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def manifest(ranks: int, hosts: int, words: tuple[str, ...], **options: Any) -> None:
    """Write the objects of a job for `kubectl apply -f -`.

    Each of the pods is a host. The first runs `ompy-run`, the others `ompy agent`, which it calls;
    none needs an sshd. WORDS are options of ompy-run and the program, behind `--`. The output is
    JSON, which kubectl takes as it does YAML. It has the job's key, unless --secret names one.
    """
    import json

    click.echo(json.dumps(_objects(ranks, hosts, words, options), indent=2))


def _objects(
    ranks: int, hosts: int, words: tuple[str, ...], options: dict[str, Any]
) -> dict[str, Any]:
    """The objects.

    Raises:
        click.UsageError: what was asked for makes no sense together.
    """
    import os

    from ompy.cli.kubernetes.manifest import Resources, Wishes, job_objects

    _check_words(words)
    if ranks < hosts:
        raise click.UsageError(f"-n {ranks} are too few for --hosts {hosts}: each has to have one")
    each, more = divmod(ranks, hosts)
    slots = (each + 1,) * more + (each,) * (hosts - more)
    parameters = [word for pair in options["parameters"] for word in ("--mca", *pair)]
    resources = Resources(options["cpus"] or str(slots[0]), options["memory"], options["shm"])
    wishes = Wishes(
        name=options["name"],
        namespace=options["namespace"],
        image=options["image"],
        slots=slots,
        words=(*parameters, *words),
        port=PORT,
        patience_s=options["start_timeout"],
        resources=resources,
        environment=tuple(map(_variable, options["variables"])),
        directory=options["workdir"] or "",
        user=options["user"],
        secret=options["secret"],
        key=b"" if options["secret"] else os.urandom(KEY_SIZE),
        deadline_s=options["deadline"] or 0,
        keep_s=options["keep"],
        jobset=options["jobset"],
    )
    return job_objects(wishes)


def _check_words(words: tuple[str, ...]) -> None:
    """See that ompy-run knows its options, and that none says again what the manifest says.

    Raises:
        click.UsageError: it does not, or one does.
    """
    from ompy.cli.options import command

    context = click.Context(command, info_name="ompy-run", allow_interspersed_args=False)
    given, _, _ = command.make_parser(context).parse_args(list(words))
    for option in command.params:
        if option.name in OF_THE_MANIFEST and option.name in given:
            said = OF_THE_MANIFEST[option.name]
            raise click.UsageError(f"{option.opts[0]} behind `--`: the manifest says it, by {said}")


def _variable(text: str) -> tuple[str, str]:
    """Name and value.

    Raises:
        click.UsageError: it is neither.
    """
    name, equals, value = text.partition("=")
    if not equals or not VARIABLE.fullmatch(name):
        raise click.UsageError(f"--env {text}: write NAME=VALUE")
    return name, value
