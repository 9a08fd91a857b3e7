"""What `ompy-info` shows, for programs: one fact a line, fields between colons.

Reference: openmpi.md 2.3. What is added to it stands behind, docs/ompy-info.md says what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    enumerator_words,
    explanation,
    verdict,
)
from ompy.cli.terminal import one_line
from ompy.mca.component import MCA_VERSION
from ompy.mca.performance import full_name
from ompy.mca.plugins.component_records import ComponentRecord


class Parsable:
    """Writes to standard output."""

    def facts(self, facts: Sequence[Fact]) -> None:
        """One line each."""
        for fact in facts:
            _put(f"{fact.key}:{quoted(fact.value)}")

    def component(self, shown: ShownComponent) -> None:
        """A component's versions, or why it is not used."""
        record, component = shown.record, shown.component
        key = f"mca:{record.framework}:{record.name}"
        if component is None or shown.failed:
            what = "failed" if shown.failed else record.state.value
            _put(f"{key}:{what}:{quoted(explanation(record))}")
            return
        api = ".".join(map(str, component.api))
        for version in (f"mca:{MCA_VERSION}", f"api:{api}.0", f"component:{component.version}"):
            _put(f"{key}:version:{quoted(version)}")

    def group(self, group: ParameterGroup) -> None:
        """The facts of each parameter."""
        for entry in group.entries:
            key = f"mca:{group.framework}:{group.component}:param:{entry.name}"
            for fact in _facts(entry, excluded=group.excluded):
                _put(f"{key}:{fact}")

    def plugins(self, records: Sequence[ComponentRecord]) -> None:
        """The facts of each record."""
        for record in records:
            key = f"plugin:{record.framework}:{record.name}:{record.distribution}"
            facts = {
                "version": record.version,
                "file": record.file,
                "target": record.target,
                "state": record.state.value,
                "reason": explanation(record),
            }
            for name, value in facts.items():
                _put(f"{key}:{name}:{quoted(value)}")

    def pvars(self, variables: Sequence[Counted]) -> None:
        """The facts of each (reference openmpi.md 2.3.5)."""
        for framework, component, variable in variables:
            name = full_name(framework, component, variable.name)
            key = f"mca:{framework}:{component}:pvar:{name}:{variable.kind}"
            facts = {"read-only": "true", "continuous": "true", "help": variable.help}
            for fact, value in {**facts, "unit": variable.unit}.items():
                _put(f"{key}:{fact}:{quoted(value)}")

    def story(self, story: Story) -> None:
        """The facts of each candidate."""
        if story.parameter is not None:
            _parameter_story(story.parameter)
        for component in story.components:
            _component_story(component)
        for choice in story.choices:
            _choice(choice)

    def finish(self, problems: Sequence[str], notices: Sequence[str]) -> None:
        """Nothing is left to say."""


def quoted(value: str) -> str:
    """A value as the last field of a line (reference openmpi.md 2.3.1)."""
    if ":" not in value:
        return value
    escaped = value.replace('"', '\\"')
    return f'"{escaped}"'


def _facts(entry: Entry, *, excluded: bool) -> Iterator[str]:
    """In the order of reference openmpi.md 2.3.4, then ours."""
    variable, parameter = entry.variable, entry.parameter
    yield f"value:{quoted(variable.text)}"
    yield f"source:{variable.origin}"
    yield f"status:{'writeable' if entry.writeable else 'read-only'}"
    yield f"level:{parameter.level}"
    yield f"help:{parameter.help}"
    for number, word in enumerator_words(parameter):
        yield f"enumerator:value:{number}:{word}"
    yield f"deprecated:{'yes' if entry.deprecated else 'no'}"
    yield f"type:{parameter.type}"
    for name in entry.synonyms:
        yield f"synonym:name:{name}"
    if entry.synonym is not None:
        yield f"synonym_of:name:{variable.name}"
    yield f"disabled:{'true' if excluded else 'false'}"
    if parameter.unit:
        yield f"unit:{parameter.unit}"
    for word in parameter.choices or ():
        yield f"choice:{word}"
    if parameter.minimum is not None:
        yield f"minimum:{parameter.minimum}"
    if parameter.maximum is not None:
        yield f"maximum:{parameter.maximum}"
    for lost in entry.shadowed:
        yield f"shadowed:{quoted(lost.raw)}:{lost.origin}"


def _parameter_story(story: ParameterStory) -> None:
    for place, candidate in enumerate(story.candidates):
        key = f"why:param:{story.name}:{place}"
        _put(f"{key}:verdict:{candidate.verdict}")
        _put(f"{key}:value:{quoted(candidate.text)}")
        _put(f"{key}:source:{quoted(candidate.source)}")
        _put(f"{key}:reason:{quoted(candidate.reason)}")


def _component_story(story: ComponentStory) -> None:
    key = f"why:component:{story.framework}:{story.name}"
    _put(f"{key}:selection:{quoted(story.selection)}")
    _put(f"{key}:source:{quoted(story.selection_source)}")
    for place, record in enumerate(story.records):
        facts = {
            "verdict": verdict(record),
            "distribution": record.distribution,
            "version": record.version,
            "file": record.file,
            "state": record.state.value,
            "reason": explanation(record),
        }
        for name, value in facts.items():
            _put(f"{key}:{place}:{name}:{quoted(value)}")


def _choice(choice: Choice) -> None:
    key = f"why:coll:{choice.where}"
    if choice.problem:
        _put(f"{key}:problem:{quoted(choice.problem)}")
    for row in choice.rows:
        of = f"{key}:{row.operation}"
        _put(f"{of}:blocking:{row.blocking}")
        _put(f"{of}:nonblocking:{row.nonblocking}")
        for place, each in enumerate(row.verdicts):
            for name, value in each._asdict().items():
                text = f"{value:g}" if isinstance(value, int | float) else value
                _put(f"{of}:{place}:{name}:{quoted(text)}")


def _put(line: str) -> None:
    click.echo(one_line(line))
