"""What `ompy-info` shows, for people: labels in a column (reference openmpi.md 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from ompy.cli.info.facts import Fact
from ompy.cli.info.model import (
    Choice,
    ComponentStory,
    Counted,
    Entry,
    ParameterGroup,
    ParameterStory,
    ShownComponent,
    Story,
    explanation,
    valid_values,
    verdict,
)
from ompy.cli.terminal import (
    GAP,
    below,
    fits_width,
    format_table,
    labelled,
    one_line,
    table_width,
)
from ompy.mca.component import MCA_VERSION
from ompy.mca.parameter import LEVELS
from ompy.mca.performance import full_name
from ompy.mca.plugins.component_records import FAILED, ComponentRecord, State

SEPARATOR: Final = "-" * 51  # reference openmpi.md 2.2.3
COLOURS: Final = {
    **dict.fromkeys((State.LOADED, State.OPENED, State.SELECTED), "green"),
    **dict.fromkeys(FAILED, "red"),
    **dict.fromkeys((State.SHADOWED, State.NOT_AVAILABLE), "yellow"),
}  # arbitrary
VERDICTS: Final = {"used": "green", "wrong": "red", "ignored": "yellow"}  # arbitrary
FAILURES: Final = {
    State.BROKEN: "failed to load",
    State.INCOMPATIBLE: "failed to load",
    State.OPEN_FAILED: "failed to open",
}  # reference openmpi.md 2.2.7
HEADS: Final = ("framework", "name", "distribution", "version", "file", "state", "reason")
# where there is no room for all: these in the table, the reason below, the rest in other formats
NARROW_HEADS: Final = ("framework", "name", "distribution", "version", "state")
NARROWEST_HEADS: Final = ("framework", "name", "state")
WHOLE: Final = "files: ompy-info --plugins --parsable or --json, or a wider terminal"


class Pretty:
    """Writes to standard output."""

    def __init__(self, width: int | None, *, colour: bool, tracebacks: bool = False) -> None:
        """Nothing is written yet.

        Args:
            width: columns to wrap at; None not to wrap.
            colour: of states and verdicts.
            tracebacks: show those of components that failed.
        """
        self._width = width
        self._colour = colour
        self._tracebacks = tracebacks

    def facts(self, facts: Sequence[Fact]) -> None:
        """One line each."""
        for fact in facts:
            self._put(fact.label, fact.value)

    def component(self, shown: ShownComponent) -> None:
        """One line."""
        record, component = shown.record, shown.component
        label = f"MCA {'(-) ' if shown.excluded else ''}{record.framework}"
        if component is not None and not shown.failed:
            api = ".".join(map(str, component.api))
            versions = f"MCA v{MCA_VERSION}, API v{api}.0, Component v{component.version}"
            self._put(label, f"{record.name} ({versions})")
            return
        how = FAILURES.get(record.state, record.state.value)
        self._put(label, f"{record.name} ({how}) {explanation(record)}", COLOURS.get(record.state))
        for line in record.traceback.splitlines() if self._tracebacks else ():
            click.echo(labelled("", one_line(line), None)[0])

    def group(self, group: ParameterGroup) -> None:
        """A separator and the parameters, if there are any to show; how many there are besides."""
        label = f"MCA {'(-) ' if group.excluded else ''}{group.framework} {group.component}"
        if group.entries:
            self._put(label, SEPARATOR)
        for entry in group.entries:
            self._put(label, _description(entry))
            self._put("", entry.parameter.help)
            valid = valid_values(entry.parameter)
            if valid:
                self._put("", f"Valid values: {valid}")
            for setting in entry.shadowed:
                self._put("", f'Shadows: "{setting.raw}" from {setting.origin}')
        if group.hidden:
            some = "1 more parameter" if group.hidden == 1 else f"{group.hidden} more parameters"
            self._put(label, f"{some} at higher levels (--level {max(LEVELS)} shows all)")

    def pvars(self, variables: Sequence[Counted]) -> None:
        """Each with its help (reference openmpi.md 2.2.6)."""
        for framework, component, variable in variables:
            name = full_name(framework, component, variable.name)
            label = f"{framework} {component}"
            of = f"type: {variable.unit}, class: {variable.kind}"
            self._put(label, f'performance "{name}" ({of})')
            self._put("", variable.help)

    def plugins(self, records: Sequence[ComponentRecord]) -> None:
        """A table that fits the terminal; where it would not, in a form with fewer columns."""
        width = table_width()
        told = [_plugin_row(record) for record in records]
        for heads in (HEADS, NARROW_HEADS, NARROWEST_HEADS):
            picked = [[row[HEADS.index(head)] for head in heads] for row in (HEADS, *told)]
            head, *rows = format_table(picked)
            if all(fits_width(cells, width) for cells in (head, *rows)):
                break
        click.echo(GAP.join(head).rstrip())
        for row, cells, record in zip(rows, told, records, strict=True):
            state = heads.index("state")
            row[state] = self._style(row[state], COLOURS.get(record.state))
            self._echo(GAP.join(row).rstrip())
            if heads is not HEADS:
                offered = "" if "version" in heads else f"{GAP.join(cells[2:4])}  "
                for line in below(offered + cells[-1], width):
                    click.echo(line)
        if heads is not HEADS:
            for line in below(WHOLE, width):
                click.echo(line.strip())

    def story(self, story: Story) -> None:
        """A table for the parameter and one for each component."""
        if story.parameter is not None:
            self._parameter_story(story.parameter)
        for component in story.components:
            self._component_story(component)
        records = [component.records[0] for component in story.components]
        for choice in story.choices:
            self._choice(choice, records)

    def finish(self, problems: Sequence[str], notices: Sequence[str]) -> None:
        """Nothing is left to say."""

    def _parameter_story(self, story: ParameterStory) -> None:
        also = f", also called {story.asked}" if story.asked != story.name else ""
        click.echo(f"parameter {story.name}{also}")
        rows = [
            (c.verdict, one_line(f'"{c.text}"'), one_line(c.source), one_line(c.reason))
            for c in story.candidates
        ]
        for row, candidate in zip(format_table(rows), story.candidates, strict=True):
            row[0] = self._style(row[0], VERDICTS.get(candidate.verdict))
            self._echo((GAP + GAP.join(row)).rstrip())

    def _component_story(self, story: ComponentStory) -> None:
        click.echo(f"component {story.framework}:{story.name}")
        selection = one_line(f'{story.framework} = "{story.selection}"')
        click.echo(f"{GAP}selection  {selection}  {one_line(story.selection_source)}")
        rows = [_offer_row(record) for record in story.records]
        for row, record in zip(format_table(rows), story.records, strict=True):
            row[-1] = self._style(row[-1], COLOURS.get(record.state))
            self._echo(GAP + GAP.join(row))
            for line in record.traceback.splitlines():
                click.echo(GAP * 2 + one_line(line))

    def _choice(self, choice: Choice, records: Sequence[ComponentRecord]) -> None:
        from ompy.cli.info.collectives import not_asked, not_available, reasons

        click.echo(f"collective operations of {choice.where}")
        if choice.problem:
            click.echo(f"{GAP}nobody can tell: {one_line(choice.problem)}")
            return
        for record in not_asked(records, choice.rows):
            click.echo(GAP + one_line(f"{record.name} {record.state.value}: {explanation(record)}"))
        for each in not_available(choice.rows):
            text = f"{each.component} {each.verdict}: {each.reason}"
            click.echo(GAP + one_line(text))
        rows = [(row.operation, row.blocking or "none", reasons(row)) for row in choice.rows]
        for cells in format_table(rows):
            self._echo((GAP + GAP.join(cells)).rstrip())

    def _put(self, label: str, value: str, colour: str | None = None) -> None:
        for line in labelled(one_line(label), one_line(value), self._width):
            self._echo(self._style(line, colour))

    def _style(self, text: str, colour: str | None) -> str:
        return click.style(text, fg=colour) if self._colour and colour else text

    def _echo(self, text: str) -> None:
        click.echo(text, color=self._colour)


def _description(entry: Entry) -> str:
    """The line about one parameter (reference openmpi.md 2.2.4); the unit is ours."""
    variable, parameter = entry.variable, entry.parameter
    parts = [
        f'current value: "{variable.text}"',
        f"data source: {variable.origin}",
        f"level: {parameter.level} {LEVELS[parameter.level]}",
        f"type: {parameter.type}",
    ]
    if parameter.unit:
        parts.append(f"unit: {parameter.unit}")
    if entry.deprecated:
        parts.append("deprecated")
    if entry.synonym is not None:
        parts.append(f"synonym of: {variable.name}")
    elif entry.synonyms:
        parts.append(f"synonyms: {', '.join(entry.synonyms)}")
    return f'{entry.kind} "{entry.name}" ({", ".join(parts)})'


def _plugin_row(record: ComponentRecord) -> list[str]:
    cells = [
        record.framework,
        record.name,
        record.distribution,
        record.version,
        record.file,
        record.state.value,
        explanation(record),
    ]
    return [one_line(cell) for cell in cells]


def _offer_row(record: ComponentRecord) -> list[str]:
    steps = ", ".join(state.value for state, _ in record.story)
    why = explanation(record)
    return [
        verdict(record),
        one_line(record.offered_by),
        one_line(record.target),
        one_line(f"{steps}: {why}" if why else steps),
    ]
