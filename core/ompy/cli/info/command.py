"""The options of `ompy-info` (reference openmpi.md 2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import click

from ompy.cli.completing.completion import (
    WordKeepingCommand,
    complete_component,
    complete_file,
    complete_level,
    complete_name,
    complete_parameter,
    complete_path_type,
    complete_type,
)
from ompy.cli.given_words import refuse_empty_words
from ompy.cli.info import PROGRAM
from ompy.cli.refusing import tell_refusal
from ompy.mca.parameter import LEVELS
from ompy.mca.parameters.settings import PARAMETER_SETS, STRICT_PLUGINS, TUNE_FILES

COLOUR_CHOICES: Final = ("auto", "never", "always")  # reference openmpi.md 2.1, Open MPI 5


class Options(NamedTuple):
    """What the command line says; the options' help tells what each is for."""

    params: Sequence[tuple[str, str]]
    level: int | None
    everything: bool
    types: Sequence[str]
    internal: bool
    selected_only: bool
    show_failed: bool
    plugins: bool
    pvars: bool
    why: Sequence[str]
    paths: Sequence[str]
    arch: bool
    hostname: bool
    config: bool
    form: str
    color: str
    mca: Sequence[tuple[str, str]]
    tune: Sequence[str]
    am: Sequence[str]
    strict_plugins: bool
    json_schema: bool
    version: bool

    @property
    def installation(self) -> bool:
        """Whether facts about the installation are asked for by name."""
        return bool(self.paths or self.arch or self.hostname or self.config)

    @property
    def views(self) -> bool:
        """Whether a view of components or parameters is asked for by name."""
        return bool(
            self.everything or self.params or self.types or self.plugins or self.pvars or self.why
        )

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Name and value of every parameter the command line sets."""
        found = list(self.mca)
        for name, files in ((TUNE_FILES, self.tune), (PARAMETER_SETS, self.am)):
            if files:
                found.append((name, ",".join(files)))
        if self.strict_plugins:
            found.append((STRICT_PLUGINS, "1"))
        return found


@click.command(
    PROGRAM,
    cls=WordKeepingCommand,
    options_metavar="[options]",
    epilog="Without options: versions and all components. Exit code: 0; 1 when something named "
    "does not exist; 2 when the command line or the settings are wrong.",
)
@click.option(
    "params",
    "--param",
    "--params",
    nargs=2,
    multiple=True,
    metavar="FRAMEWORK COMPONENT",
    shell_complete=complete_component,
    help="Show a component's parameters; all for either, base for the framework's own. Repeatable.",
)
@click.option(
    "-l",
    "--level",
    type=int,
    metavar=f"{min(LEVELS)}..{max(LEVELS)}",
    shell_complete=complete_level,
    help="Show parameters up to this level, 1 for users to 9 for developers. "
    "[default: 1, with --all 9]",
)
@click.option("everything", "-a", "--all", is_flag=True, help="Show everything.")
@click.option(
    "types",
    "-t",
    "--type",
    multiple=True,
    metavar="TYPE",
    shell_complete=complete_type,
    help="Show all parameters of a type (int, size_t, bool, string, ...). Repeatable.",
)
@click.option("--internal", is_flag=True, help="Show internal parameters, too.")
@click.option(
    "-s", "--selected-only", is_flag=True, help="Show only components that would be selected."
)
@click.option(
    "--show-failed", is_flag=True, help="Show all that failed to load or open, with tracebacks."
)
@click.option("--plugins", is_flag=True, help="Show every component found and what became of it.")
@click.option("--pvars", is_flag=True, help="Show the performance variables of every component.")
@click.option(
    "--why",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_name,
    help="Say why a value is in force, or what became of a component. Repeatable.",
)
@click.option(
    "paths",
    "--path",
    multiple=True,
    metavar="TYPE",
    shell_complete=complete_path_type,
    help="Show a directory: prefix, bindir, sysconfdir, ..., or all. Repeatable.",
)
@click.option("--arch", is_flag=True, help="Show the architecture.")
@click.option("--hostname", is_flag=True, help="Show this host's name.")
@click.option("-c", "--config", is_flag=True, help="Show how ompy and what it needs were made.")
@click.option(
    "form",
    "--pretty-print",
    flag_value="pretty",
    default=True,
    help="Write for people. [default]",
)
@click.option(
    "form", "--parsable", "--parseable", flag_value="parsable", help="Write one fact a line."
)
@click.option("form", "--json", flag_value="json", help="Write one JSON document.")
@click.option("--json-schema", is_flag=True, help="Print the schema of these documents.")
@click.option(
    "--color",
    type=click.Choice(COLOUR_CHOICES),
    default=COLOUR_CHOICES[0],
    help="Colour what is written. [default: auto, on a terminal]",
)
@click.option(
    "--mca",
    "-mca",
    "--gmca",
    "-gmca",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    shell_complete=complete_parameter,
    help="Set a parameter first, as for ompy-run. Repeatable.",
)
@click.option(
    "--tune",
    "-tune",
    multiple=True,
    metavar="FILE,...",
    shell_complete=complete_file,
    help="Read files first, as for ompy-run. Repeatable.",
)
@click.option(
    "--am",
    "-am",
    multiple=True,
    metavar="NAME,...",
    shell_complete=complete_file,
    help="Use parameter sets first, as for ompy-run. Repeatable.",
)
@click.option("--strict-plugins", is_flag=True, help="Set mca_base_strict_plugins first.")
@click.option("-V", "--version", is_flag=True, help="Show the version of ompy.")
@click.help_option("-h", "--help")
def command(**_options: object) -> None:
    """Show the components of ompy, their parameters, the values in force and why."""


refuse_empty_words(command)


def run_info(arguments: Sequence[str]) -> int:
    """Do what a command line asks for. Returns the exit code."""
    try:
        context = command.make_context(PROGRAM, list(arguments))
    except click.exceptions.Exit as end:  # after --help
        return end.exit_code
    except click.ClickException as problem:
        tell_refusal(problem, PROGRAM)
        return problem.exit_code
    from ompy.cli.info.session import answer_request

    return answer_request(Options(**context.params))
