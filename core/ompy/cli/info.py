"""`ompy-info`: which components there are, what can be set and what is set.

Reference: openmpi.md 2.1 to 2.3 (`ompi_info`). A component the selection excludes is named, not
imported, so its parameters are not shown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import click

from ompy import __version__
from ompy.cli.terminal import GAP, labelled, table, wrap_width
from ompy.data.errors import MPIError
from ompy.mca.component import MCA_VERSION
from ompy.mca.errors import ComponentError, UsageError, did_you_mean
from ompy.mca.parameter import BASE, LEVELS
from ompy.mca.records import FAILED, SETTLED, ComponentRecord, State

if TYPE_CHECKING:
    from ompy.mca.parameter import Parameter
    from ompy.mca.registry import Registry
    from ompy.mca.variables import Variable

ALL: Final = "all"
SEPARATOR: Final = "-" * 51  # reference openmpi.md 2.2.3
NOT_FOUND: Final = 1  # reference openmpi.md 2.1.3: exit code
COLOURS: Final = {
    **dict.fromkeys((State.LOADED, State.OPENED, State.SELECTED), "green"),
    **dict.fromkeys(FAILED, "red"),
    **dict.fromkeys((State.SHADOWED, State.NOT_AVAILABLE), "yellow"),
}  # arbitrary


class Pretty:
    """Facts for people: labels in a column."""

    def __init__(self) -> None:
        self._width = wrap_width()

    def fact(self, label: str, key: str, value: str) -> None:
        """One fact about the installation; `key` is what the other format calls it."""
        self._put(label, value)

    def component(self, record: ComponentRecord) -> None:
        """A component with its versions, or why it is not used."""
        component = record.component
        if component is not None:
            api = ".".join(map(str, component.api))
            versions = f"MCA v{MCA_VERSION}, API v{api}.0, Component v{component.version}"
            self._put(f"MCA {record.framework}", f"{record.name} ({versions})")
        else:
            mark = "(-) " if record.state is State.BLOCKED else ""
            told = f"{record.name} ({record.state.value}) {record.reason}"
            self._put(f"MCA {mark}{record.framework}", told)

    def variables(self, framework: str, component: str, variables: Sequence[Variable]) -> None:
        """The parameters of a component that are to be shown."""
        label = f"MCA {framework} {component}"
        if variables:
            self._put(label, SEPARATOR)
        for variable in variables:
            parameter = variable.parameter
            unit = f", unit: {parameter.unit}" if parameter.unit else ""
            self._put(
                label,
                f'parameter "{variable.name}" (current value: "{variable.text}", '
                f"data source: {variable.origin}, level: {parameter.level} "
                f"{LEVELS[parameter.level]}, type: {parameter.type}{unit})",
            )
            self._put("", parameter.help)
            valid = valid_values(parameter)
            if valid:
                self._put("", f"Valid values: {valid}")
            for setting in variable.shadowed:
                self._put("", f'Shadows: "{setting.raw}" from {setting.origin}')

    def hidden(self, count: int) -> None:
        """Say how many parameters are not shown."""
        if count:
            some = "1 more parameter" if count == 1 else f"{count} more parameters"
            click.echo(f"{some} at higher levels (--level 9 shows all)")

    def plugins(self, records: Sequence[ComponentRecord]) -> None:
        """All components with their states."""
        heads = ["framework", "name", "distribution", "version", "state", "reason"]
        head, *rows = table([heads, *map(_plugin_row, records)])
        click.echo(GAP.join(head).rstrip())
        for row, record in zip(rows, records, strict=True):
            row[4] = click.style(row[4], fg=COLOURS.get(record.state))
            click.echo(GAP.join(row).rstrip())

    def _put(self, label: str, value: str) -> None:
        for line in labelled(label, value, self._width):
            click.echo(line)


class Parsable:
    """Facts for programs: one a line, fields between colons."""

    def fact(self, label: str, key: str, value: str) -> None:
        """One fact about the installation."""
        click.echo(f"{key}:{quoted(value)}")

    def component(self, record: ComponentRecord) -> None:
        """A component's versions, or why it is not used."""
        key = f"mca:{record.framework}:{record.name}"
        component = record.component
        if component is None:
            click.echo(f"{key}:failed:{quoted(f'{record.state.value} {record.reason}'.strip())}")
            return
        api = ".".join(map(str, component.api))
        for version in (f"mca:{MCA_VERSION}", f"api:{api}.0", f"component:{component.version}"):
            click.echo(f"{key}:version:{quoted(version)}")

    def variables(self, framework: str, component: str, variables: Sequence[Variable]) -> None:
        """The parameters of a component that are to be shown."""
        for variable in variables:
            parameter = variable.parameter
            key = f"mca:{framework}:{component}:param:{variable.name}"
            facts = [
                f"value:{quoted(variable.text)}",
                f"source:{variable.origin}",
                "status:read-only",
                f"level:{parameter.level}",
                f"help:{parameter.help}",
                *(f"enumerator:value:{number}:{word}" for number, word in enumerators(parameter)),
                "deprecated:no",
                f"type:{parameter.type}",
                *([f"unit:{parameter.unit}"] if parameter.unit else []),
                *(f"shadowed:{quoted(lost.raw)}:{lost.origin}" for lost in variable.shadowed),
                "disabled:false",
            ]
            for fact in facts:
                click.echo(f"{key}:{fact}")

    def hidden(self, count: int) -> None:
        """Nothing: a program asks for the level it wants."""

    def plugins(self, records: Sequence[ComponentRecord]) -> None:
        """All components with their states."""
        for record in records:
            key = f"plugin:{record.framework}:{record.name}:{record.distribution}"
            facts = {"version": record.version, "target": record.target}
            facts |= {"state": record.state.value, "reason": record.reason}
            for name, value in facts.items():
                click.echo(f"{key}:{name}:{quoted(value)}")


def quoted(value: str) -> str:
    """A value as the last field of a parsable line (reference openmpi.md 2.3.1)."""
    if ":" not in value:
        return value
    escaped = value.replace('"', '\\"')
    return f'"{escaped}"'


def enumerators(parameter: Parameter) -> list[tuple[int, str]]:
    """The words a parameter knows, with their numbers."""
    if parameter.type == "bool":
        return [(0, "false"), (1, "true")]
    if parameter.enumerator is not None:
        return [(number, word) for word, number in parameter.enumerator.words.items()]
    return list(enumerate(parameter.choices or ()))


def valid_values(parameter: Parameter) -> str:
    """What a parameter may be set to, for people; empty if anything of its type."""
    texts = []
    if parameter.choices:
        texts += [f"{word} ({meaning})" for word, meaning in parameter.choices.items()]
    elif parameter.enumerator is not None:
        texts.append(parameter.enumerator.valid())
    if parameter.minimum is not None and parameter.maximum is not None:
        texts.append(f"{parameter.minimum} - {parameter.maximum}")
    elif parameter.minimum is not None:
        texts.append(f"at least {parameter.minimum}")
    elif parameter.maximum is not None:
        texts.append(f"at most {parameter.maximum}")
    return ", ".join(texts)


def _plugin_row(record: ComponentRecord) -> list[str]:
    return [
        record.framework,
        record.name,
        record.distribution,
        record.version,
        record.state.value,
        record.reason,
    ]


class Info:
    """One run of the command: a registry and a format."""

    def __init__(self, registry: Registry, output: Pretty | Parsable, level: int) -> None:
        self.registry = registry
        self.output = output
        self.level = level
        self._hidden = 0

    def versions(self) -> None:
        """The installation."""
        import platform
        import sysconfig

        import ompy

        python = f"{platform.python_implementation()} {platform.python_version()}"
        fact = self.output.fact
        fact("Package", "package", f"ompy {__version__}")
        fact("ompy", "ompy:version:full", __version__)
        fact("Python", "python:version:full", python)
        fact("Prefix", "path:prefix", sys.prefix)
        fact("Package directory", "path:pkglibdir", os.path.dirname(ompy.__file__ or ""))
        fact("Configured architecture", "config:arch", sysconfig.get_platform())

    def components(self) -> None:
        """One line for each component."""
        for framework in self._frameworks():
            for record in self.registry.load(framework):
                self.output.component(record)

    def parameters(self, framework: str, component: str) -> None:
        """Versions and parameters of a framework's component; either may be `all`."""
        for name in self._chosen(framework, component):
            if component in (ALL, BASE):
                self._group(name, BASE)
            for record in self.registry.load(name) if name in self._frameworks() else []:
                if component in (ALL, record.name):
                    self.output.component(record)
                    if record.component is not None:
                        self._group(name, record.name)
        self.output.hidden(self._hidden)
        self._hidden = 0

    def plugins(self) -> None:
        """Every component with its state, opened as a job would open it."""
        self._open([*self._frameworks(), "hooks"])
        self.output.plugins(self.registry.records)

    def why(self, name: str) -> None:
        """What became of everything of this name: components, or settings of a parameter."""
        records = [
            record
            for record in self.registry.records
            if name in (record.name, record.full_name, record.framework)
        ]
        try:
            variable = self.registry.variable(name)
        except UsageError:
            if not records:
                names = [record.name for record in self.registry.records]
                names += [v.name for fw in self.registry.frameworks for v in self._variables(fw)]
                _not_found(f"nothing is called {name}{did_you_mean(name, names)}")
        else:
            _explain_variable(variable)
        self._open(dict.fromkeys(record.framework for record in records))
        for full_name in dict.fromkeys(record.full_name for record in records):
            _explain_component([record for record in records if record.full_name == full_name])

    def _frameworks(self) -> list[str]:
        """The frameworks whose components are listed."""
        everything = self.registry.frameworks.items()
        return [name for name, info in everything if info.api is not None and name != "hooks"]

    def _chosen(self, framework: str, component: str) -> list[str]:
        known = list(self.registry.frameworks)
        if framework not in (ALL, *known):
            near = did_you_mean(framework, known)
            _not_found(f"there is no framework {framework}{near} (there are {', '.join(known)})")
        chosen = known if framework == ALL else [framework]
        names = dict.fromkeys(
            record.name for fw in chosen for record in self.registry.records_of(fw)
        )
        if component not in (ALL, BASE, *names):
            of = "" if framework == ALL else f"{framework} "
            near = did_you_mean(component, [*names, BASE])
            there_are = ", ".join([BASE, *names])
            _not_found(f"there is no {of}component {component}{near} (there are {there_are})")
        return chosen

    def _group(self, framework: str, component: str) -> None:
        variables = self.registry.variables(framework, component)
        shown = [variable for variable in variables if variable.parameter.level <= self.level]
        self._hidden += len(variables) - len(shown)
        self.output.variables(framework, component, shown)

    def _variables(self, framework: str) -> list[Variable]:
        names = [BASE, *(record.name for record in self.registry.records_of(framework))]
        return [variable for name in names for variable in self.registry.variables(framework, name)]

    def _open(self, frameworks: Iterable[str]) -> None:
        """Open what can be opened; what cannot is told by the records and by `check`."""
        for framework in frameworks:
            try:
                if framework in self._frameworks():
                    self.registry.open(framework)
                if framework == "pml":
                    _select_wrappers(self.registry)
            except (UsageError, ComponentError, MPIError):
                pass
            self.registry.load(framework)
        self.registry.close()


def _select_wrappers(registry: Registry) -> None:
    """Show which wrappers of the PML a job would use: their parameters alone decide."""
    from ompy.runtime.pml_selection import sort_out

    _, wrappers = sort_out(registry)
    for wrapper in wrappers:
        registry.select(wrapper)


def _explain_variable(variable: Variable) -> None:
    lost = [(setting.raw, str(setting.origin)) for setting in variable.shadowed]
    if variable.origin.source != "default":
        lost.append((variable.parameter.text(variable.parameter.default), "default"))
    rows = [("used", f'"{variable.text}"', str(variable.origin))]
    rows += [("lost", f'"{raw}"', origin) for raw, origin in lost]
    click.echo(f"parameter {variable.name}")
    for row in table(rows):
        click.echo(GAP + GAP.join(row))


def _explain_component(records: list[ComponentRecord]) -> None:
    unused = SETTLED | FAILED | {State.NOT_AVAILABLE, State.NOT_SELECTED}
    rows = [
        (
            "lost" if record.state in unused else "used",
            f"{record.distribution} {record.version}",
            record.target,
            f"{record.state.value}: {record.reason}" if record.reason else record.state.value,
        )
        for record in records
    ]
    click.echo(f"component {records[0].full_name}")
    for row, record in zip(table(rows), records, strict=True):
        row[-1] = click.style(row[-1], fg=COLOURS.get(record.state))
        click.echo(GAP + GAP.join(row))
        for line in record.traceback.splitlines():
            click.echo(GAP * 2 + line)


def _not_found(message: str) -> None:
    click.echo(f"ompy-info: {message}", err=True)
    raise SystemExit(NOT_FOUND)


def _registry(mca: Sequence[tuple[str, str]]) -> Registry:
    from ompy.frameworks.catalog import CATALOG
    from ompy.mca.registry import Registry
    from ompy.mca.settings import gather

    return Registry(CATALOG, gather(mca, os.environ))


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-V", "--version", is_flag=True, help="Show the version of ompy.")
@click.option(
    "params",
    "--param",
    "--params",
    nargs=2,
    multiple=True,
    metavar="FRAMEWORK COMPONENT",
    help="Show a component's parameters; all for either, base for the framework's own.",
)
@click.option(
    "-l",
    "--level",
    type=click.IntRange(min(LEVELS), max(LEVELS)),
    help="Show parameters up to this level, 1 for users to 9 for developers. "
    "[default: 1, with --all 9]",
)
@click.option("everything", "-a", "--all", is_flag=True, help="Show everything.")
@click.option("--parsable", "--parseable", is_flag=True, help="One fact a line, for programs.")
@click.option("--plugins", is_flag=True, help="Show every component found and what became of it.")
@click.option("--why", metavar="NAME", help="Say why a component is used, or a value is in force.")
@click.option(
    "--mca",
    "-mca",
    "--gmca",
    "-gmca",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="Set a parameter first, as for ompy-run.",
)
def main(
    version: bool,
    params: tuple[tuple[str, str], ...],
    level: int | None,
    everything: bool,
    parsable: bool,
    plugins: bool,
    why: str | None,
    mca: tuple[tuple[str, str], ...],
) -> None:
    """Show the components of ompy, their parameters and the values in force."""
    if version:
        click.echo(f"ompy v{__version__}")
        return
    try:
        registry = _registry(mca)
    except UsageError as error:
        raise SystemExit(_complain(error)) from None
    exit_code = 0
    try:
        registry.check()
    except UsageError as error:
        exit_code = _complain(error)
        if not (plugins or why):
            raise SystemExit(exit_code) from None
    output = Parsable() if parsable else Pretty()
    info = Info(registry, output, level or (max(LEVELS) if everything else min(LEVELS)))
    _show(info, params=params, everything=everything, plugins=plugins, why=why)
    raise SystemExit(exit_code)


def _show(
    info: Info,
    *,
    params: Sequence[tuple[str, str]],
    everything: bool,
    plugins: bool,
    why: str | None,
) -> None:
    if everything or not (params or plugins or why):
        info.versions()
    if everything:
        params = [(ALL, ALL)]
    elif not (params or plugins or why):
        info.components()
    for framework, component in params:
        info.parameters(framework, component)
    if plugins:
        info.plugins()
    if why:
        info.why(why)


def _complain(error: UsageError) -> int:
    for problem in error.problems:
        click.echo(f"ompy-info: {problem}", err=True)
    return error.exit_code
