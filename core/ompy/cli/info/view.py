"""From a registry to what `ompy-info` shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ompy.cli.info.model import IN_USE, Choice, Entry, Output, ParameterGroup, ShownComponent, Story
from ompy.cli.info.opening import open_as_a_job
from ompy.cli.info.why import component_stories, parameter_story
from ompy.mca.errors import did_you_mean
from ompy.mca.parameter import BASE, TYPES, Flag
from ompy.mca.parameters.base_parameters import own_parameters
from ompy.mca.parameters.settings import Setting
from ompy.mca.parameters.variables import Variable
from ompy.mca.plugins.component_records import FAILED, ComponentRecord, State
from ompy.mca.plugins.excluded import ExcludedComponents
from ompy.mca.registry import Registry

ALL: Final = "all"


class NotFound(Exception):
    """Something the user named does not exist; the text says what there is."""


class Scope(NamedTuple):
    """How much is shown.

    Attributes:
        level: parameters up to this one.
        internal: parameters and synonyms that are for developers, too.
        selected_only: only components a job would use.
        show_failed: what failed outside the frameworks, too, and what fails when opened.
    """

    level: int
    internal: bool = False
    selected_only: bool = False
    show_failed: bool = False


class View:
    """What there is to show of one registry.

    Attributes:
        registry: checked, or told to be wrong.
    """

    def __init__(
        self, registry: Registry, settings: Sequence[Setting], output: Output, scope: Scope
    ) -> None:
        """Show nothing yet.

        Args:
            registry: as a job would have it.
            settings: what it was made with.
            output: the format.
            scope: how much.
        """
        self.registry = registry
        self._settings = settings
        self._output = output
        self._scope = scope
        self._excluded: ExcludedComponents | None = None
        self._opened: set[str] = set()
        self.failures: list[str] = []

    @property
    def problems(self) -> list[str]:
        """What is wrong with settings of excluded components, as far as they were looked at."""
        return self._excluded.problems if self._excluded is not None else []

    # Names the user gave

    def frameworks(self, framework: str, component: str) -> list[str]:
        """The frameworks of a `--param`.

        Raises:
            NotFound: there is no such framework, or no such component in it.
        """
        known = list(self.registry.frameworks)
        if framework not in (ALL, *known):
            near = did_you_mean(framework, known)
            raise NotFound(
                f"there is no framework {framework}{near} (there are {', '.join(known)})"
            )
        chosen = known if framework == ALL else [framework]
        records = [record for name in chosen for record in self.registry.records_of(name)]
        names = dict.fromkeys(record.name for record in records)
        if component not in (ALL, BASE) and not any(_is_called(r, component) for r in records):
            of = "" if framework == ALL else f"{framework} "
            near = did_you_mean(component, [*names, BASE])
            there_are = ", ".join([BASE, *names])
            raise NotFound(f"there is no {of}component {component}{near} (there are {there_are})")
        return chosen

    def type_named(self, name: str) -> str:
        """The type of a `--type`.

        Raises:
            NotFound: there is no such type.
        """
        if name not in TYPES:
            near = did_you_mean(name, TYPES)
            raise NotFound(f"there is no type {name}{near} (there are {', '.join(TYPES)})")
        return name

    def story(self, name: str) -> Story:
        """What there is to tell of a `--why`. Opens what it tells of.

        Raises:
            NotFound: nothing has this name.
        """
        records = [
            record
            for record in self.registry.records
            if _is_called(record, name) or name in (record.full_name, record.framework)
        ]
        parameter = parameter_story(self.registry, self._settings, name)
        if parameter is None and not records:
            raise NotFound(f"nothing is called {name}{did_you_mean(name, set(self._names()))}")
        self._open(dict.fromkeys(record.framework for record in records))
        full_names = dict.fromkeys(record.full_name for record in records)
        told = _choices(self.registry) if name == "coll" else []
        return Story(name, parameter, component_stories(self.registry, full_names), told)

    def _names(self) -> Iterator[str]:
        """Everything `story` would find."""
        for name, framework in self.registry.frameworks.items():
            yield from own_parameters(framework)
            for record in self.registry.load(name):
                yield record.name
                for parameter in record.component.parameters if record.component else ():
                    yield f"{name}_{record.name}_{parameter.name}"
                    yield from (synonym.name for synonym in parameter.synonyms)

    # Views

    def components(self) -> None:
        """One line for each component."""
        for framework in self.registry.frameworks:
            for shown in self._components(framework):
                self._output.component(shown)
        self._unknown_settings()

    def parameters(self, frameworks: Iterable[str], component: str) -> None:
        """Versions and parameters of a component of each framework; it may be `all`."""
        for framework in frameworks:
            if component in (ALL, BASE):
                self._output.group(self._base_group(framework))
            for shown in self._components(framework):
                if component == ALL or _is_called(shown.record, component):
                    self._output.component(shown)
                    if shown.component is not None:
                        self._output.group(self._component_group(shown))
        if component == ALL:
            self._unknown_settings()

    def of_type(self, name: str) -> None:
        """All parameters of a type."""
        for framework in self.registry.frameworks:
            groups = [self._base_group(framework, name)]
            groups += [
                self._component_group(shown, name)
                for shown in self._components(framework)
                if shown.component is not None
            ]
            for group in groups:
                if group.entries or group.hidden:
                    self._output.group(group)

    def plugins(self) -> None:
        """Every component with its state, opened as a job would open it."""
        self._open(self.registry.frameworks)
        self._output.plugins(self.registry.records)

    def pvars(self) -> None:
        """The performance variables of every component that can be used."""
        self._open(self.registry.frameworks)
        self._output.pvars(
            [
                (record.framework, record.name, variable)
                for record in self.registry.records
                if record.component is not None
                for variable in getattr(record.component, "pvars", ())
            ]
        )

    # Components

    def _components(self, framework: str) -> Iterator[ShownComponent]:
        """The components of a framework that are to be shown."""
        self._get_ready(framework)
        for record in self.registry.load(framework):
            if self._scope.selected_only and record.state not in IN_USE:
                continue
            component = record.component
            blocked = record.state is State.BLOCKED
            if blocked and record.in_tree:
                component = self._excluded_components().component(framework, record.name)
            yield ShownComponent(record, component, blocked, record.state in FAILED)

    def _get_ready(self, framework: str) -> None:
        """Open a framework if what is shown depends on it."""
        if self._scope.selected_only or self._scope.show_failed:
            self._open([framework])

    def _unknown_settings(self) -> None:
        """Distributions that failed before it could be told which frameworks they are for."""
        for record in self.registry.records if self._scope.show_failed else ():
            if record.framework not in self.registry.frameworks:
                self._output.component(ShownComponent(record, None, excluded=False, failed=True))

    def _excluded_components(self) -> ExcludedComponents:
        if self._excluded is None:
            self._excluded = ExcludedComponents(self.registry)
        return self._excluded

    def _open(self, frameworks: Iterable[str]) -> None:
        """Open as a job would, each framework once."""
        new = [framework for framework in frameworks if framework not in self._opened]
        self._opened.update(new)
        self.failures += open_as_a_job(self.registry, new)

    # Parameters

    def _base_group(self, framework: str, of_type: str = "") -> ParameterGroup:
        self._get_ready(framework)
        variables = self.registry.variables(framework)
        return self._group(framework, BASE, variables, of_type, excluded=False)

    def _component_group(self, shown: ShownComponent, of_type: str = "") -> ParameterGroup:
        record, component = shown.record, shown.component
        if shown.excluded and component is not None:
            variables = self._excluded_components().variables(component)
        else:
            variables = self.registry.variables(record.framework, record.name)
        return self._group(
            record.framework, record.name, variables, of_type, excluded=shown.excluded
        )

    def _group(
        self,
        framework: str,
        component: str,
        variables: Iterable[Variable],
        of_type: str,
        *,
        excluded: bool,
    ) -> ParameterGroup:
        entries: list[Entry] = []
        hidden = 0
        for variable in variables:
            parameter = variable.parameter
            internal = parameter.flags & Flag.INTERNAL
            if of_type not in ("", parameter.type) or (internal and not self._scope.internal):
                continue
            if parameter.level > self._scope.level:
                hidden += 1
            else:
                entries += self._entries(variable, excluded=excluded)
        return ParameterGroup(framework, component, excluded, entries, hidden)

    def _entries(self, variable: Variable, *, excluded: bool) -> list[Entry]:
        """A parameter and its synonyms."""
        synonyms = [
            synonym
            for synonym in variable.parameter.synonyms
            if self._scope.internal or not synonym.flags & Flag.INTERNAL
        ]
        writeable = not excluded and self.registry.is_writeable(variable)
        names = tuple(synonym.name for synonym in synonyms)
        return [
            Entry(variable.name, variable, None, names, writeable),
            *(Entry(synonym.name, variable, synonym, (), writeable) for synonym in synonyms),
        ]


def _choices(registry: Registry) -> list[Choice]:
    from ompy.cli.info.collectives import choices  # brings up worlds: much to import

    return choices(registry)


def _is_called(record: ComponentRecord, name: str) -> bool:
    return name in (record.name, *record.aliases)
