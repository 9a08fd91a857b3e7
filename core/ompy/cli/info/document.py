"""What `ompy-info` shows, as one JSON document: `schema.json` describes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import click

import ompy
from ompy.cli.forms import described
from ompy.cli.info.facts import Fact
from ompy.cli.info.model import (
    Candidate,
    Choice,
    ComponentStory,
    Counted,
    Entry,
    ParameterGroup,
    ShownComponent,
    Story,
    enumerator_words,
    verdict,
)
from ompy.mca.component import MCA_VERSION
from ompy.mca.parameter import LEVELS, Flag
from ompy.mca.parameters.validation import json_schema
from ompy.mca.performance import full_name
from ompy.mca.plugins.component_records import ComponentRecord

FORMAT: Final = 1  # arbitrary: counts the changes that a reader of the last form cannot read


class Json:
    """Collects a document and writes it to standard output at the end."""

    def __init__(self) -> None:
        """The document tells the version so far."""
        self._document: dict[str, Any] = {
            "format": FORMAT,
            "ompy": {"version": ompy.__version__, "hot_modules": described()},
        }

    def facts(self, facts: Sequence[Fact]) -> None:
        """Under the keys of the parsable format."""
        if facts:
            known = self._document.setdefault("facts", {})
            known.update((fact.key, fact.value) for fact in facts)

    def component(self, shown: ShownComponent) -> None:
        """One of a list."""
        component = shown.component
        api = ".".join(map(str, component.api)) + ".0" if component is not None else None
        self._list("components").append(
            {
                **_record(shown.record),
                "mca_version": MCA_VERSION if component is not None else None,
                "api_version": api,
                "component_version": component.version if component is not None else None,
                "excluded": shown.excluded,
                "failed": shown.failed,
            }
        )

    def group(self, group: ParameterGroup) -> None:
        """Each parameter one of a list, its synonyms in it."""
        of = {"framework": group.framework, "component": group.component}
        parameters = self._list("parameters")
        for entry in group.entries:
            if entry.synonym is None:
                parameters.append(of | _parameter(entry) | {"disabled": group.excluded})
        self._list("hidden").append(of | {"parameters": group.hidden})

    def plugins(self, records: Sequence[ComponentRecord]) -> None:
        """A list of records."""
        self._list("plugins").extend(_record(record) for record in records)

    def pvars(self, variables: Sequence[Counted]) -> None:
        """A list of them."""
        self._list("pvars").extend(
            {
                "framework": framework,
                "component": component,
                "name": full_name(framework, component, variable.name),
                "class": variable.kind,
                "unit": variable.unit,
                "help": variable.help,
            }
            for framework, component, variable in variables
        )

    def story(self, story: Story) -> None:
        """One of a list."""
        parameter = story.parameter
        told = None
        if parameter is not None:
            candidates = [_candidate(candidate) for candidate in parameter.candidates]
            told = {"name": parameter.name, "candidates": candidates}
        components = [_component_story(component) for component in story.components]
        self._list("why").append(
            {
                "asked": story.asked,
                "parameter": told,
                "components": components,
                "collectives": [_choice(choice) for choice in story.choices],
            }
        )

    def finish(self, problems: Sequence[str], notices: Sequence[str]) -> None:
        """Write the document."""
        self._document |= {"problems": list(problems), "notices": list(notices)}
        click.echo(json.dumps(self._document, indent=2))

    def _list(self, key: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._document.setdefault(key, [])
        return found


def _record(record: ComponentRecord) -> dict[str, Any]:
    return {
        "framework": record.framework,
        "name": record.name,
        "distribution": record.distribution,
        "version": record.version,
        "file": record.file,
        "target": record.target,
        "aliases": list(record.aliases),
        "state": record.state.value,
        "reason": record.reason,
        "remark": record.remark,
        "traceback": record.traceback,
        "story": [{"state": state.value, "reason": reason} for state, reason in record.story],
    }


def _parameter(entry: Entry) -> dict[str, Any]:
    variable, parameter = entry.variable, entry.parameter
    choices = parameter.choices.items() if parameter.choices else ()
    return {
        "name": variable.name,
        "kind": entry.kind,
        "value": variable.value,
        "text": variable.text,
        "default": parameter.default,
        "source": variable.origin.source,
        "source_detail": variable.origin.detail,
        "shadowed": [
            {"value": lost.raw, "source": lost.origin.source, "source_detail": lost.origin.detail}
            for lost in entry.shadowed
        ],
        "status": "writeable" if entry.writeable else "read-only",
        "scope": parameter.scope.name.lower(),
        "level": parameter.level,
        "level_name": LEVELS[parameter.level],
        "type": parameter.type,
        "unit": parameter.unit,
        "help": parameter.help,
        "enumerator": [{"value": n, "word": word} for n, word in enumerator_words(parameter)],
        "choices": [{"word": word, "meaning": meaning} for word, meaning in choices],
        "minimum": parameter.minimum,
        "maximum": parameter.maximum,
        "value_schema": json_schema(parameter),
        "deprecated": entry.deprecated,
        "internal": bool(parameter.flags & Flag.INTERNAL),
        "synonyms": [
            {"name": synonym.name, "deprecated": bool(synonym.flags & Flag.DEPRECATED)}
            for synonym in parameter.synonyms
            if synonym.name in entry.synonyms
        ],
    }


def _candidate(candidate: Candidate) -> dict[str, str]:
    return {
        "verdict": candidate.verdict,
        "value": candidate.text,
        "source": candidate.source,
        "reason": candidate.reason,
    }


def _component_story(story: ComponentStory) -> dict[str, Any]:
    return {
        "framework": story.framework,
        "name": story.name,
        "selection": story.selection,
        "selection_source": story.selection_source,
        "offers": [{"verdict": verdict(record)} | _record(record) for record in story.records],
    }


def _choice(choice: Choice) -> dict[str, Any]:
    operations = [
        {
            "operation": row.operation,
            "blocking": row.blocking or None,
            "nonblocking": row.nonblocking or None,
            "components": [verdict._asdict() for verdict in row.verdicts],
        }
        for row in choice.rows
    ]
    return {"where": choice.where, "problem": choice.problem, "operations": operations}
